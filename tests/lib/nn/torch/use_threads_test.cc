#include "lib/nn/torch/use_threads.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <thread>

namespace tetrion {
namespace {

// As the policy's thread and the trainer's of one learner.
TEST(UseThreadsTest, CountOfAThreadIsItsOwnFromItsFirstComputationOn) {
  int before = 0, after = 0;
  std::thread policy([&] {
    UseThreads(1);
    std::thread([] { UseThreads(4); }).join();
    before = omp_get_max_threads();
    (void)torch::ones({1 << 20}).exp();  // large enough to be shared among threads
    after = omp_get_max_threads();
  });
  policy.join();
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
}

}  // namespace
}  // namespace tetrion
