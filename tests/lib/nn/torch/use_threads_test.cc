#include "lib/nn/torch/use_threads.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>
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

// Has this process address space for `bytes` more than it has now, and ends it with status 7 when
// threads cannot be started, as an exception.
[[noreturn]] void AskForThreadsWithin(rlim_t bytes, int threads) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit limit = {.rlim_cur = most, .rlim_max = most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  try {
    UseThreads(threads);
  } catch (const std::system_error&) {
    std::_Exit(7);
  }
  (void)torch::ones({1 << 20}).exp();  // which would end the process with 1
  std::_Exit(0);
}

// Stacks of threads are 8 MiB each, or what ulimit -s says.
TEST(UseThreadsDeathTest, ThreadsThatCannotBeStartedAreAnException) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(AskForThreadsWithin(rlim_t{32} << 20, 64), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tetrion
