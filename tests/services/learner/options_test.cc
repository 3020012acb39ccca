#include "services/learner/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"

namespace tetrion::learner {
namespace {

LearnerOptions Parsed(std::vector<const char*> argv) {
  argv.insert(argv.begin(), "tetrion-learner");
  LearnerOptions options;
  EXPECT_FALSE(
      ParseLearnerOptions(static_cast<int>(argv.size()), argv.data(), options).has_value());
  return options;
}

std::string RefusalOf(std::vector<const char*> argv) {
  argv.insert(argv.begin(), "tetrion-learner");
  LearnerOptions options;
  try {
    (void)ParseLearnerOptions(static_cast<int>(argv.size()), argv.data(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(LearnerOptionsTest, ReadsItsOwnOptionsAndTheRunSettingsTheUserInsistsOn) {
  const LearnerOptions options =
      Parsed({"--run-folder", "runs/a", "--resume", "--threads", "2", "--checkpoint-every", "0.5",
              "--keep-checkpoints", "7", "--lanes", "8", "--env", "cartpole"});
  EXPECT_EQ(options.member.run_folder, "runs/a");
  EXPECT_TRUE(options.resume);
  EXPECT_FALSE(options.force);
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.checkpoint_every_s, 0.5);
  EXPECT_EQ(options.keep_checkpoints, 7);
  ASSERT_EQ(options.member.given.size(), 2U);
}

TEST(LearnerOptionsTest, SettingsNotGivenAreNotInsistedOn) {
  EXPECT_TRUE(Parsed({"--coordinator", "tcp://h:1"}).member.given.empty());
}

TEST(LearnerOptionsTest, RefusesUnknownAndOutOfRangeOptionsByName) {
  EXPECT_NE(RefusalOf({"--run-folder", "x", "--treads", "2"}).find("--treads"), std::string::npos);
  const std::string range = RefusalOf({"--run-folder", "x", "--threads", "257"});
  EXPECT_NE(range.find("threads"), std::string::npos);
  EXPECT_NE(range.find("256"), std::string::npos);
  EXPECT_NE(RefusalOf({"--run-folder", "x", "--drain-timeout", "0"}), "");
}

TEST(LearnerOptionsTest, ReadsTheKeysOfBothChannels) {
  const LearnerOptions options =
      Parsed({"--coordinator", "tcp://h:1", "--rows-bind", "tcp://0.0.0.0:9001", "--curve-key", "k",
              "--curve-server", "s", "--curve-allow", "a"});
  EXPECT_EQ(options.member.curve.allow, "a");
  EXPECT_FALSE(options.rows.insecure);
  EXPECT_NE(RefusalOf({"--coordinator", "tcp://h:1", "--rows-bind", "tcp://0.0.0.0:9001"})
                .find("--insecure"),
            std::string::npos);
  EXPECT_TRUE(
      Parsed({"--coordinator", "tcp://h:1", "--rows-bind", "tcp://0.0.0.0:9001", "--insecure"})
          .rows.insecure);
}

TEST(LearnerOptionsTest, NeedsExactlyOneWayToItsRun) {
  EXPECT_NE(RefusalOf({}).find("--run-folder"), std::string::npos);
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--coordinator", "tcp://h:1"}).find("--coordinator"),
            std::string::npos);
}

TEST(LearnerOptionsTest, DocumentationNamesEveryOptionWithItsRange) {
  LearnerOptions options;
  const char* argv[] = {"tetrion-learner", "--help-markdown"};
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(ParseLearnerOptions(2, argv, options), 0);
  const std::string text = ::testing::internal::GetCapturedStdout();
  for (const char* word : {"checkpoint-every", "keep-checkpoints", "resume", "force", "threads",
                           "drain-timeout", "give-up", "256"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace tetrion::learner
