#include "services/actor/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/core/error.h"

namespace tetrion::actor {
namespace {

std::string RefusalOf(std::vector<const char*> argv) {
  argv.insert(argv.begin(), "tetrion-actor");
  ActorOptions options;
  try {
    (void)ParseActorOptions(static_cast<int>(argv.size()), argv.data(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(ActorOptionsTest, ReadsItsOwnOptionsAndTheRunSettingsTheUserInsistsOn) {
  const char* argv[] = {"tetrion-actor", "--run-folder", "runs/a", "--workers", "3", "--lanes", "8",
                        "--env",         "cartpole"};
  ActorOptions options;
  ASSERT_FALSE(ParseActorOptions(9, argv, options).has_value());
  EXPECT_EQ(options.member.run_folder, "runs/a");
  EXPECT_EQ(options.workers, 3);
  ASSERT_EQ(options.member.given.size(), 2U);
}

TEST(ActorOptionsTest, RefusesUnknownAndOutOfRangeOptionsByName) {
  EXPECT_NE(RefusalOf({"--run-folder", "x", "--wrkers", "2"}).find("--wrkers"), std::string::npos);
  const std::string range = RefusalOf({"--run-folder", "x", "--workers", "65"});
  EXPECT_NE(range.find("workers"), std::string::npos);
  EXPECT_NE(range.find("64"), std::string::npos);
}

TEST(ActorOptionsTest, NeedsExactlyOneWayToItsRun) {
  EXPECT_NE(RefusalOf({}).find("--run-folder"), std::string::npos);
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--coordinator", "tcp://h:1"}).find("--coordinator"),
            std::string::npos);
}

TEST(ActorOptionsTest, RefusesMoreRingsThanARunHas) {
  const std::string refusal = RefusalOf(
      {"--run-folder", "a", "--inference", "streamed", "--workers", "64", "--groups", "16"});
  for (const char* part : {"1024 rings", "at most 256", "fewer workers or groups"}) {
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
  }
  EXPECT_EQ(RefusalOf({"--run-folder", "a", "--inference", "streamed", "--workers", "64",
                       "--groups", "4"}),
            "");
  EXPECT_EQ(RefusalOf({"--run-folder", "a", "--workers", "64", "--groups", "16"}), "")
      << "local workers have no groups";
}

TEST(ActorOptionsTest, StreamedInferenceLeavesNoPolicyToTheWorkers) {
  const char* argv[] = {"tetrion-actor", "--run-folder", "a", "--inference",
                        "streamed",      "--groups",     "3"};
  ActorOptions options;
  ASSERT_FALSE(ParseActorOptions(7, argv, options).has_value());
  EXPECT_EQ(options.inference, "streamed");
  EXPECT_EQ(options.groups, 3);
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--inference", "streamed", "--policy", "random"})
                .find("--policy random"),
            std::string::npos);
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--inference", "remote"}).find("streamed"),
            std::string::npos);
}

std::string RowsOf(const char* coordinator, const char* inference = "local",
                   const char* rows = "auto") {
  const char* argv[] = {"tetrion-actor", "--coordinator", coordinator, "--inference",
                        inference,       "--rows",        rows};
  ActorOptions options;
  EXPECT_FALSE(ParseActorOptions(7, argv, options).has_value());
  return options.rows;
}

TEST(ActorOptionsTest, RowsTakeTheNetworkWhenTheCoordinatorIsOnAnotherHost) {
  EXPECT_EQ(RowsOf("tcp://10.0.0.7:9000"), "tcp");
  EXPECT_EQ(RowsOf("tcp://learner.example:9000"), "tcp");
  for (const char* here :
       {"tcp://127.0.0.1:9000", "tcp://localhost:9000", "tcp://[::1]:9000", "ipc:///run/c"}) {
    EXPECT_EQ(RowsOf(here), "shm") << here;
  }
  EXPECT_EQ(RowsOf("tcp://10.0.0.7:9000", "local", "shm"), "shm");
  EXPECT_EQ(RowsOf("tcp://127.0.0.1:9000", "local", "tcp"), "tcp");
  EXPECT_EQ(RowsOf("tcp://10.0.0.7:9000", "streamed"), "shm");
}

TEST(ActorOptionsTest, RefusesRowsOnTheNetworkThatCannotBe) {
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--rows", "tcp", "--inference", "streamed"})
                .find("--inference streamed needs the learner's shared memory"),
            std::string::npos);
  EXPECT_NE(RefusalOf({"--run-folder", "a", "--rows", "shm", "--compress", "zstd"})
                .find("--compress zstd is for rows on the network"),
            std::string::npos);
}

}  // namespace
}  // namespace tetrion::actor
