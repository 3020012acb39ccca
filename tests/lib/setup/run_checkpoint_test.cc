#include "lib/setup/run_checkpoint.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

class CheckpointOfTest : public ::testing::Test {
 protected:
  CheckpointOfTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-taken-XXXXXX";
    runs_ = mkdtemp(pattern.data());
  }
  ~CheckpointOfTest() override { std::filesystem::remove_all(runs_); }

  RunFolder Folder() const { return RunFolder::At(runs_ + "/one"); }
  void Save(std::int64_t updates, double mean_return) const {
    CheckpointStore(Folder().checkpoints(), 3)
        .Save({.tensors = {{"policy.w", {1}, {1}}}, .counters = {{"updates", updates}}},
              {.run = "one", .updates = updates, .mean_return = mean_return});
  }
  std::string Refusal() const {
    try {
      (void)CheckpointOf(Folder(), false);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kConfig);
      return error.what();
    }
    return "";
  }

  std::string runs_;
};

TEST_F(CheckpointOfTest, IsTheNewestOrTheBest) {
  Save(10, 99);
  Save(20, 1);
  EXPECT_EQ(CheckpointOf(Folder(), false).info.updates, 20);
  EXPECT_EQ(CheckpointOf(Folder(), true).info.updates, 10);
}

TEST_F(CheckpointOfTest, RunsWithoutAUsableOneAreRefusedByName) {
  EXPECT_EQ(Refusal(), "run one has no checkpoint yet: let it train on");
  EXPECT_FALSE(std::filesystem::exists(Folder().checkpoints())) << "looking makes no folder";
  Save(10, 1);
  const std::string path = CheckpointOf(Folder(), false).path;
  std::ofstream(path, std::ios::trunc) << "spoilt";
  EXPECT_NE(Refusal().find("10.safetensors"), std::string::npos) << Refusal();
}

}  // namespace
}  // namespace tetrion
