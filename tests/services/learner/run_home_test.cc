#include "services/learner/run_home.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "tests/support/no_open_files.h"

namespace tetrion::learner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunHomeTest : public ::testing::Test {
 protected:
  RunHomeTest() {
    char pattern[] = "/tmp/tetrion_home_XXXXXX";
    base_ = mkdtemp(pattern);
    registered_.run = "x";
    registered_.run_folder = base_ / "coordinators" / "x";
  }
  ~RunHomeTest() override { fs::remove_all(base_); }
  std::string Refusal(ExitCode code = ExitCode::kConfig) const {
    try {
      (void)RunHomeOf(options_, registered_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "";
  }

  fs::path base_;
  LearnerOptions options_;
  wire::Registered registered_;
};

TEST_F(RunHomeTest, TheCoordinatorsPathIsTakenWhereNothingElseIsSaid) {
  fs::create_directories(registered_.run_folder);
  EXPECT_EQ(RunHomeOf(options_, registered_).path(), registered_.run_folder);
}

TEST_F(RunHomeTest, RunsThatAreMountedElsewhereAreFoundByTheRunsName) {
  options_.runs_dir = base_ / "mine";
  fs::create_directories(base_ / "mine" / "x" / "checkpoints");
  const RunFolder home = RunHomeOf(options_, registered_);
  EXPECT_EQ(home.checkpoints(), base_ / "mine" / "x" / "checkpoints");
  EXPECT_TRUE(fs::is_empty(home.checkpoints()));
  EXPECT_FALSE(fs::exists(registered_.run_folder));
}

TEST_F(RunHomeTest, ItsOwnRunFolderBeatsAll) {
  fs::create_directories(base_ / "given");
  options_.member.run_folder = base_ / "given";
  EXPECT_EQ(RunHomeOf(options_, registered_).path(), base_ / "given");
}

TEST_F(RunHomeTest, AMissingFolderIsNamedWithTheOptionThatHelps) {
  EXPECT_THAT(Refusal(), HasSubstr("run x is not here, " + registered_.run_folder));
  options_.runs_dir = base_ / "mine";
  fs::create_directories(base_ / "mine");
  EXPECT_THAT(Refusal(), HasSubstr("not here, " + (base_ / "mine" / "x").string()));
  EXPECT_THAT(Refusal(), HasSubstr("--runs-dir"));
}

TEST_F(RunHomeTest, WhatMayPassIsTriedAgain) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  fs::create_directories(registered_.run_folder);
  const testing::NoOpenFiles none;
  EXPECT_THAT(Refusal(ExitCode::kTryAgain), HasSubstr("cannot write to"));
}

TEST_F(RunHomeTest, AFolderThatTakesNoFileIsRefused) {
  fs::create_directories(registered_.run_folder);
  // Refuses root, too.
  fs::create_symlink("/proc/self", registered_.run_folder + "/checkpoints");
  EXPECT_THAT(Refusal(), HasSubstr("cannot write to " + registered_.run_folder + "/checkpoints"));
}

}  // namespace
}  // namespace tetrion::learner
