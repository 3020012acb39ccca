#include "services/learner/checkpoint_agent.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/lib/shm/scratch_dir.h"

namespace tetrion::learner {
namespace {

TrainerState StateOf(float weight) {
  return {.tensors = {{.name = "policy.w", .shape = {1}, .data = {weight}}}, .counters = {}};
}

TEST(CheckpointAgentTest, WritesWhatWasSubmitted) {
  const ScratchDir dir;
  std::vector<double> seconds;
  CheckpointAgent agent(dir.path(), 3, [&](double took) { seconds.push_back(took); });
  agent.GoOnFrom(7);
  EXPECT_EQ(agent.AgeSeconds(), 0.0);
  agent.Submit(StateOf(1.5F), {.updates = 10});
  EXPECT_TRUE(agent.Holds(7));
  EXPECT_EQ(agent.DoWork(), 1);
  EXPECT_TRUE(agent.Holds(10));
  EXPECT_EQ(agent.written(), 1U);
  EXPECT_EQ(agent.failed(), 0U);
  ASSERT_EQ(seconds.size(), 1U);
  EXPECT_GT(seconds[0], 0.0);
  EXPECT_GT(agent.AgeSeconds(), 0.0);
  const auto newest = CheckpointStore(dir.path(), 3).LoadNewest();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->info.updates, 10);
  EXPECT_EQ(newest->state.tensors.at(0).data.at(0), 1.5F);
}

TEST(CheckpointAgentTest, WithoutASnapshotItWritesNothing) {
  const ScratchDir dir;
  CheckpointAgent agent(dir.path(), 3);
  EXPECT_EQ(agent.DoWork(), 0);
  EXPECT_EQ(agent.written(), 0U);
}

TEST(CheckpointAgentTest, LatestSnapshotReplacesOneThatIsNotWrittenYet) {
  const ScratchDir dir;
  CheckpointAgent agent(dir.path(), 3);
  agent.Submit(StateOf(1), {.updates = 1});
  agent.Submit(StateOf(2), {.updates = 2});
  EXPECT_EQ(agent.DoWork(), 1);
  EXPECT_EQ(agent.DoWork(), 0);
  const auto manifest = CheckpointStore(dir.path(), 3).Manifest();
  ASSERT_EQ(manifest.size(), 1U);
  EXPECT_EQ(manifest[0].info.updates, 2);
}

TEST(CheckpointAgentTest, FailingDiskIsCountedAndTheNextSnapshotIsTried) {
  const ScratchDir dir;
  const std::string folder = dir.path() + "/checkpoints";
  std::ofstream(folder) << "in the way";
  CheckpointAgent agent(folder, 3);
  agent.Submit(StateOf(1), {.updates = 1});
  EXPECT_NO_THROW((void)agent.DoWork());
  EXPECT_EQ(agent.failed(), 1U);
  EXPECT_EQ(agent.written(), 0U);
  EXPECT_FALSE(agent.Holds(1));
  EXPECT_GT(agent.AgeSeconds(), 0.0) << "what is lost by a kill is as old as the first snapshot";
  std::filesystem::remove(folder);
  agent.Submit(StateOf(2), {.updates = 2});
  (void)agent.DoWork();
  EXPECT_EQ(agent.written(), 1U);
  EXPECT_EQ(CheckpointStore(folder, 3).LoadNewest()->info.updates, 2);
}

TEST(CheckpointAgentTest, EndsWhereAnotherLearnerHasTakenTheFolderOver) {
  const ScratchDir dir;
  CheckpointAgent agent(dir.path(), 3), successor(dir.path(), 3);
  EXPECT_FALSE(agent.TakeOver().LoadNewest().has_value());
  agent.Submit(StateOf(1), {.updates = 1});
  EXPECT_EQ(agent.DoWork(), 1);
  EXPECT_EQ(successor.TakeOver().LoadNewest()->info.updates, 1);
  agent.Submit(StateOf(2), {.updates = 2});
  EXPECT_THROW((void)agent.DoWork(), PlaceTaken);
  EXPECT_THROW(agent.WriteNow(StateOf(2), {.updates = 2}), PlaceTaken);
  EXPECT_TRUE(agent.Holds(1));
}

TEST(CheckpointAgentTest, WriteNowTellsItsCallerOfARefusingDisk) {
  const ScratchDir dir;
  const std::string folder = dir.path() + "/checkpoints";
  std::ofstream(folder) << "in the way";
  CheckpointAgent agent(folder, 3);
  const Error error = ErrorOf([&] { agent.WriteNow(StateOf(1), {.updates = 1}); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_NE(std::string(error.what()).find(folder), std::string::npos);
}

TEST(CheckpointAgentTest, SubmitWakesTheWaitingThreadAndNeverBlocksOnIt) {
  const ScratchDir dir;
  CheckpointAgent agent(dir.path(), 3);
  std::thread thread([&] {
    while (agent.written() == 0) (void)agent.DoWork();
  });
  for (std::int64_t i = 1; i <= 100; ++i) agent.Submit(StateOf(1), {.updates = i});
  thread.join();
  while (agent.DoWork() != 0) {
  }
  EXPECT_EQ(CheckpointStore(dir.path(), 3).LoadNewest()->info.updates, 100);
}

}  // namespace
}  // namespace tetrion::learner
