#include "lib/nn/torch/profiler_guard.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ProfilerGuardTest, CopiesWithTheHostAreToldByTheirNames) {
  for (const char* copy : {"Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)",
                           "Memcpy HtoH (Pageable -> Pinned)", "Memcpy HtoA (Pinned -> Array)"}) {
    EXPECT_TRUE(NamesHostCopy(copy)) << copy;
  }
  for (const char* other : {"Memcpy DtoD (Device -> Device)", "Memcpy PtoP (Device -> Device)",
                            "Memset (Device)", "HtoD", "void at::native::copy_kernel<float>", ""}) {
    EXPECT_FALSE(NamesHostCopy(other)) << other;
  }
}

// Also where no device is: a region that was not watched does not pass.
TEST(ProfilerGuardTest, RegionWithoutAKernelIsInconclusive) {
  for (int region = 0; region < 2; ++region) {
    ProfilerGuard guard;
    const torch::Tensor sum = torch::ones({8, 8}).sum();
    EXPECT_EQ(sum.item<float>(), 64.0F);
    EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("no kernel")));
  }
}

// The positive control of a device: an element read by the host.
TEST(ProfilerGuardTest, ReadOfTheHostIsReportedOnADevice) {
  if (!torch::hasCUDA() || torch::cuda::device_count() == 0) {
    GTEST_SKIP() << "no CUDA device, or a libtorch without CUDA: nothing ran on one";
  }
  const torch::Tensor ones = torch::ones({8, 8}, torch::kCUDA);
  torch::cuda::synchronize();
  {
    ProfilerGuard guard;
    const torch::Tensor sum = ones.sum();
    torch::cuda::synchronize();
    EXPECT_TRUE(guard.Violations().empty());
  }
  ProfilerGuard guard;
  EXPECT_EQ(ones.sum().item<float>(), 64.0F);
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("DtoH")));
}

}  // namespace
}  // namespace tetrion

// Ends without destructors: the profiler's library stops a thread of its own in one, which now and
// then ends the program with "std::system_error: Invalid argument" when the machine is busy.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
  std::fflush(nullptr);
  std::_Exit(result);
}
