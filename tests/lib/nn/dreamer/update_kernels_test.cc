#include "lib/nn/dreamer/update_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace tetrion {
namespace {

// Kernels that nothing is asked of.
class UnusedKernels final : public UpdateKernels {
 public:
  void NormSiluForward(const float*, std::int64_t, std::int64_t, const float*, float*, float*,
                       float*) override {
    std::abort();
  }
  void NormSiluBackward(const float*, const float*, std::int64_t, std::int64_t, const float*,
                        const float*, const float*, float*, float*) override {
    std::abort();
  }
  void GruForward(const float*, const float*, std::int64_t, std::int64_t, float*, float*) override {
    std::abort();
  }
  void GruBackward(const float*, const float*, const float*, const float*, std::int64_t,
                   std::int64_t, float*, float*) override {
    std::abort();
  }
  void DrawOneHots(const float*, std::int64_t, std::int64_t, const UpdateDraw&, float*) override {
    std::abort();
  }
};

TEST(UpdateKernelsScopeTest, KernelsAreThoseOfTheCallingThreadsScope) {
  UnusedKernels kernels;
  EXPECT_EQ(CurrentUpdateKernels(), nullptr);
  {
    const UpdateKernelsScope scope(kernels);
    EXPECT_EQ(CurrentUpdateKernels(), &kernels);
    std::thread([] { EXPECT_EQ(CurrentUpdateKernels(), nullptr); }).join();
  }
  EXPECT_EQ(CurrentUpdateKernels(), nullptr);
}

TEST(UpdateKernelsScopeDeathTest, ScopesDoNotNest) {
  UnusedKernels kernels;
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
