#include "lib/cuda/sim/kernel_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "lib/core/error.h"

namespace tetrion::cuda::sim {
namespace {

using ::testing::EndsWith;

void FirstKernel() {}
void SecondKernel() {}

const void* AddressOf(void (*function)()) {
  return reinterpret_cast<const void*>(function);
}

TEST(KernelLogTest, AppendsALineTheFirstTimeAKernelRuns) {
  const std::string path = ::testing::TempDir() + "kernel_log_test";
  (void)std::remove(path.c_str());
  for (int process = 0; process < 2; ++process) {
    KernelLog log(path);
    log.Note(AddressOf(FirstKernel));
    log.Note(AddressOf(SecondKernel));
    log.Note(AddressOf(FirstKernel));
  }
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], EndsWith("cuda_sim_test"));
  EXPECT_NE(lines[0], lines[1]);
  EXPECT_EQ(lines[0], lines[2]);
  (void)std::remove(path.c_str());
}

TEST(KernelLogTest, NotesNothingWithoutAPath) {
  EXPECT_NO_THROW(KernelLog("").Note(AddressOf(FirstKernel)));  // no file has that name
}

TEST(KernelLogTest, AFileThatTakesNothingIsAnError) {
  KernelLog log("/no folder/of this name");
  EXPECT_THROW(log.Note(AddressOf(FirstKernel)), Error);
}

}  // namespace
}  // namespace tetrion::cuda::sim
