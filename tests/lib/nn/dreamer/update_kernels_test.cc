#include "lib/nn/dreamer/update_kernels.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/lib/nn/dreamer/unused_kernels.h"

namespace tetrion {
namespace {

TEST(UpdateKernelsScopeTest, KernelsAreThoseOfTheCallingThreadsScope) {
  testing::UnusedKernels kernels;
  EXPECT_EQ(CurrentUpdateKernels(), nullptr);
  {
    const UpdateKernelsScope scope(kernels);
    EXPECT_EQ(CurrentUpdateKernels(), &kernels);
    std::thread([] { EXPECT_EQ(CurrentUpdateKernels(), nullptr); }).join();
  }
  EXPECT_EQ(CurrentUpdateKernels(), nullptr);
}

TEST(UpdateKernelsScopeDeathTest, ScopesDoNotNest) {
  testing::UnusedKernels kernels;
  const UpdateKernelsScope scope(kernels);
  EXPECT_DEATH(UpdateKernelsScope{kernels}, "one scope of kernels at a time");
}

TEST(NormSiluPartsTest, EveryRowHasAPart) {
  EXPECT_EQ(NormSiluParts(1), 1);
  EXPECT_EQ(NormSiluParts(8), 1);
  EXPECT_EQ(NormSiluParts(9), 2);
}

}  // namespace
}  // namespace tetrion
