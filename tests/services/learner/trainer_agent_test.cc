#include "services/learner/trainer_agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/lib/shm/scratch_dir.h"
#include "tests/services/learner/fake_trainer.h"

namespace tetrion::learner {
namespace {

constexpr UpdateStats kNothing = {.status = BatchStatus::kNotReady};

class TrainerAgentTest : public ::testing::Test {
 protected:
  TrainerAgentTest() : store_(dir_.path(), 5), checkpoints_(dir_.path(), 5) {}

  std::unique_ptr<TrainerAgent> Make(std::uint64_t resumed_updates = 0,
                                     std::int64_t checkpoint_every_ns = 3600 * kNanosPerSecond) {
    return std::make_unique<TrainerAgent>(
        TrainerAgent::Config{.batch_steps = 64,
                             .checkpoint_every_ns = checkpoint_every_ns,
                             .region = "/shm/learner.region"},
        TrainerAgent::Hooks{
            .on_update =
                [this](UpdateStats stats) { told_.push_back(Figure(stats, "policy_loss")); },
            .on_wait = [this](double seconds) { waited_s_ += seconds; },
            .on_publish = [this](double seconds) { publish_s_.push_back(seconds); },
            .describe = [] { return CheckpointInfo{.run = "r", .env = "counting"}; }},
        trainer_, source_, slots_.Writer(), versions_, checkpoints_, resumed_updates);
  }

  ScratchDir dir_;
  CheckpointStore store_;
  CheckpointAgent checkpoints_;
  FakeTrainer trainer_;
  NoSource source_;
  TestSlots slots_;
  Versions versions_;
  std::vector<double> told_;
  std::vector<double> publish_s_;
  double waited_s_ = 0;
};

TEST_F(TrainerAgentTest, PublishesTheFirstWeightsBeforeTheFirstUpdate) {
  versions_.Allow(1, 100);
  trainer_.script = {kNothing};
  const auto agent = Make();
  EXPECT_EQ(agent->DoWork(), 0);
  EXPECT_EQ(slots_.Newest(), 1U);
  EXPECT_EQ(slots_.NewestWeight(), 0.0F);
  EXPECT_EQ(trainer_.versions, (std::vector<std::uint32_t>{1}));
}

TEST_F(TrainerAgentTest, EveryBatchIsPublishedUnderTheNextVersion) {
  versions_.Allow(1001, 2001);
  const auto agent = Make();
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(agent->DoWork(), 1);
    EXPECT_EQ(slots_.Newest(), 1002 + i);
    EXPECT_EQ(slots_.NewestWeight(), static_cast<float>(i + 1));
    EXPECT_EQ(agent->Progress().version, 1002 + i);
  }
  EXPECT_EQ(trainer_.versions, (std::vector<std::uint32_t>{1001, 1002, 1003, 1004, 1005}));
  EXPECT_EQ(agent->Progress().updates, 5U);
  EXPECT_EQ(agent->Progress().batches, 5U);
  EXPECT_EQ(agent->Progress().steps_trained, 5U * 64);
  EXPECT_EQ(told_.size(), 5U);
  EXPECT_EQ(publish_s_.size(), 6U) << "the first weights, too";
  EXPECT_GT(*std::min_element(publish_s_.begin(), publish_s_.end()), 0);
}

TEST_F(TrainerAgentTest, NoUpdateWithoutAVersionUntilTheBlockIsExtended) {
  const auto agent = Make();
  EXPECT_EQ(agent->DoWork(), 0);
  EXPECT_TRUE(trainer_.versions.empty());
  const std::int64_t waited_ns = agent->Progress().version_wait_ns;
  EXPECT_GT(waited_ns, 0);
  versions_.Allow(1, 3);
  EXPECT_EQ(agent->DoWork(), 1);  // weights 1, update, weights 2
  EXPECT_EQ(agent->DoWork(), 1);  // one more update, its weights wait
  EXPECT_EQ(slots_.Newest(), 2U);
  EXPECT_EQ(agent->Progress().version_wait_ns, waited_ns) << "none of it is the trainer's work";
  EXPECT_EQ(agent->DoWork(), 0);
  EXPECT_EQ(agent->DoWork(), 0);
  EXPECT_GT(agent->Progress().version_wait_ns, waited_ns);
  EXPECT_EQ(publish_s_.size(), 2U) << "a wait for a version publishes nothing";
  EXPECT_EQ(trainer_.versions.size(), 2U);
  EXPECT_EQ(slots_.Newest(), 2U);
  versions_.Allow(1, 1003);
  EXPECT_EQ(agent->DoWork(), 1);
  EXPECT_EQ(trainer_.versions, (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(slots_.Newest(), 4U);
  EXPECT_EQ(slots_.NewestWeight(), 3.0F);
}

TEST_F(TrainerAgentTest, RestartedLearnerGoesOnAboveTheVersionsInTheSlot) {
  versions_.Allow(1, 100);
  auto agent = Make();
  (void)agent->DoWork();
  agent.reset();
  versions_.Allow(1001, 2001);  // the next block: the dead learner's rest stays unused
  agent = Make();
  (void)agent->DoWork();
  EXPECT_EQ(trainer_.versions.back(), 1001U);
  EXPECT_EQ(slots_.Newest(), 1002U);
}

// An older tetrion.db was put back beside a region that has stayed.
TEST_F(TrainerAgentTest, SlotWithAVersionThatTheAccountHasNotReservedEndsTheLearner) {
  slots_.Writer().Publish(3, std::vector<std::byte>(TestSlots::kBlobBytes));
  versions_.Allow(1, 3);
  const auto agent = Make();
  const Error error = ErrorOf([&] { (void)agent->DoWork(); });
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  for (const char* part : {"learner.region", "version 3", "below 3"}) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_TRUE(trainer_.versions.empty());
}

TEST_F(TrainerAgentTest, SlotWithTheLastReservedVersionWaitsForTheNextBlock) {
  slots_.Writer().Publish(3, std::vector<std::byte>(TestSlots::kBlobBytes));
  versions_.Allow(1, 4);
  const auto agent = Make();
  EXPECT_EQ(agent->DoWork(), 0);
  versions_.Allow(1, 1004);
  EXPECT_EQ(agent->DoWork(), 1);
  EXPECT_EQ(trainer_.versions, (std::vector<std::uint32_t>{4}));
}

TEST_F(TrainerAgentTest, ABatchThatIsNotReadyIsCountedAndPublishesNothing) {
  versions_.Allow(1, 100);
  const UpdateStats waited = {.status = BatchStatus::kNotReady, .wait_s = 0.5};
  trainer_.script = {waited, waited, waited};
  const auto agent = Make();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(agent->DoWork(), 0);
  EXPECT_EQ(agent->Progress().not_ready, 3U);
  EXPECT_EQ(waited_s_, 1.5);
  EXPECT_EQ(agent->Progress().updates, 0U);
  EXPECT_EQ(slots_.Newest(), 1U);
  EXPECT_TRUE(told_.empty());
}

TEST_F(TrainerAgentTest, SkippedUpdatesAreCountedAndReuseCountsEveryOptimiserStep) {
  versions_.Allow(1, 100);
  trainer_.script = {
      {.status = BatchStatus::kReady, .updates = 3},
      {.status = BatchStatus::kReady, .updates = 2, .skipped = 1, .problem = "the loss"}};
  Figure(trainer_.script.front(), "policy_loss") = 0.25;
  const auto agent = Make();
  (void)agent->DoWork();
  (void)agent->DoWork();
  const TrainerProgress progress = agent->Progress();
  EXPECT_EQ(progress.updates, 5U);
  EXPECT_EQ(progress.batches, 2U);
  EXPECT_EQ(progress.skipped, 1U);
  EXPECT_EQ(progress.last.problem, "the loss");
  EXPECT_EQ(told_.at(0), 0.25);
}

TEST_F(TrainerAgentTest, ABatchThatTaughtNothingLeavesTheVersionAsItIs) {
  versions_.Allow(1, 100);
  trainer_.script = {{.status = BatchStatus::kReady, .updates = 1},
                     {.status = BatchStatus::kReady, .skipped = 1, .problem = "the loss"},
                     {.status = BatchStatus::kReady}};
  const auto agent = Make();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(agent->DoWork(), 1);
  EXPECT_EQ(slots_.Newest(), 2U);
  EXPECT_EQ(publish_s_.size(), 2U);
  EXPECT_EQ(agent->Progress().batches, 1U);
  EXPECT_EQ(agent->Progress().steps_trained, 64U);
  EXPECT_EQ(agent->Progress().windows, 3U) << "they were drawn";
  EXPECT_EQ(agent->DoWork(), 1);
  EXPECT_EQ(slots_.Newest(), 3U);
  EXPECT_EQ(trainer_.versions, (std::vector<std::uint32_t>{1, 2, 2, 2}));
}

// What /status and metrics.jsonl show must not turn into NaN or 0 for a batch that taught nothing.
TEST_F(TrainerAgentTest, FiguresStayThoseOfTheLastUpdateThatWasTaken) {
  versions_.Allow(1, 100);
  trainer_.script = {{.status = BatchStatus::kReady, .updates = 1},
                     {.status = BatchStatus::kReady, .skipped = 1, .problem = "the loss"},
                     {.status = BatchStatus::kReady, .updates = 1}};
  Figure(trainer_.script[0], "policy_loss") = 0.25;
  Figure(trainer_.script[1], "policy_loss") = std::numeric_limits<double>::quiet_NaN();
  Figure(trainer_.script[2], "policy_loss") = 0.5;
  const auto agent = Make();
  for (const double shown : {0.25, 0.25, 0.5}) {
    (void)agent->DoWork();
    UpdateStats last = agent->Progress().last;
    EXPECT_EQ(Figure(last, "policy_loss"), shown);
  }
  EXPECT_EQ(agent->Progress().skipped, 1U);
}

TEST_F(TrainerAgentTest, DivergedTrainingEndsAndItsLastGoodWeightsAreSaved) {
  versions_.Allow(1, 1000);
  const auto agent = Make();
  (void)agent->DoWork();
  trainer_.script.assign(TrainingWatch::kMostSkippedInARow,
                         {.status = BatchStatus::kReady, .skipped = 1, .problem = "the loss"});
  const Error error = ErrorOf([&] {
    for (int i = 0; i < TrainingWatch::kMostSkippedInARow; ++i) (void)agent->DoWork();
  });
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_EQ(agent->Progress().skipped, static_cast<unsigned>(TrainingWatch::kMostSkippedInARow));
  agent->SaveFinal();
  EXPECT_EQ(store_.LoadNewest()->state.tensors.at(0).data.at(0), 1.0F);
  EXPECT_EQ(slots_.NewestWeight(), 1.0F);
}

TEST_F(TrainerAgentTest, FirstCheckpointFollowsTheFirstUpdateTheNextItsInterval) {
  versions_.Allow(1, 100);
  trainer_.script = {kNothing};
  const auto agent = Make();
  (void)agent->DoWork();
  EXPECT_EQ(checkpoints_.DoWork(), 0);
  (void)agent->DoWork();
  EXPECT_EQ(checkpoints_.DoWork(), 1);
  const auto manifest = store_.Manifest();
  ASSERT_EQ(manifest.size(), 1U);
  EXPECT_EQ(manifest[0].info.updates, 1);
  EXPECT_EQ(manifest[0].info.policy_version, 2);
  EXPECT_EQ(manifest[0].info.run, "r");
  for (int i = 0; i < 5; ++i) (void)agent->DoWork();
  EXPECT_EQ(checkpoints_.DoWork(), 0);
}

TEST_F(TrainerAgentTest, CheckpointWithEveryUpdateIsNotWrittenAgain) {
  versions_.Allow(1, 100);
  const UpdateStats ready = {.status = BatchStatus::kReady, .updates = 1};
  trainer_.script = {ready, ready, kNothing, kNothing, kNothing};
  const auto agent = Make(0, /*checkpoint_every_ns=*/1);
  (void)agent->DoWork();
  (void)agent->DoWork();  // its snapshot replaces the first one
  EXPECT_EQ(checkpoints_.DoWork(), 1);
  EXPECT_EQ(store_.Manifest().back().info.updates, 2);
  (void)agent->DoWork();
  EXPECT_EQ(checkpoints_.DoWork(), 0) << "the written one has every update";
}

// The rows end, and a kill later on must not lose what was learnt from them.
TEST_F(TrainerAgentTest, CheckpointThatComesDueWithoutRowsIsSubmittedThen) {
  versions_.Allow(1, 100);
  trainer_.script = {{.status = BatchStatus::kReady, .updates = 1},
                     {.status = BatchStatus::kReady, .updates = 1}};
  const std::int64_t every_ns = 200 * kNanosPerMilli;
  const auto agent = Make(0, every_ns);
  const std::int64_t start_ns = MonotonicClock::Get().NowNs();
  (void)agent->DoWork();
  (void)agent->DoWork();
  const Deadline deadline = Deadline::AfterMs(20'000);
  do {
    trainer_.script = {kNothing};
    (void)agent->DoWork();
    (void)checkpoints_.DoWork();
  } while (!checkpoints_.Holds(2) && !deadline.Passed());
  EXPECT_TRUE(checkpoints_.Holds(2));
  EXPECT_EQ(store_.Manifest().back().info.updates, 2);
  EXPECT_GE(MonotonicClock::Get().NowNs() - start_ns, every_ns);
}

TEST_F(TrainerAgentTest, FinalCheckpointHoldsTheLastUpdate) {
  versions_.Allow(1, 100);
  const auto agent = Make(/*resumed_updates=*/40);
  for (int i = 0; i < 3; ++i) (void)agent->DoWork();
  agent->SaveFinal();
  const auto newest = store_.LoadNewest();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->info.updates, 43);
  EXPECT_EQ(newest->state.tensors.at(0).data.at(0), 3.0F);
}

// A device that has failed cannot be read any more; what was read of it before is on the host.
TEST_F(TrainerAgentTest, SnapshotThatWaitsIsWrittenWhenTheLastStateCannotBeRead) {
  versions_.Allow(1, 100);
  const auto agent = Make();
  (void)agent->DoWork();  // submits the first update's
  (void)agent->DoWork();
  trainer_.lost = true;
  EXPECT_EQ(ErrorOf([&] { agent->SaveFinal(); }).code(), ExitCode::kTryAgain);
  const auto newest = store_.LoadNewest();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->info.updates, 1);
}

TEST_F(TrainerAgentTest, WhatACheckpointHoldsAlreadyIsNotWrittenAgainAtTheEnd) {
  versions_.Allow(1, 100);
  const auto agent = Make();
  (void)agent->DoWork();
  EXPECT_EQ(checkpoints_.DoWork(), 1);
  agent->SaveFinal();
  EXPECT_EQ(store_.Manifest().size(), 1U);
}

TEST_F(TrainerAgentTest, NothingLearntLeavesNoCheckpoint) {
  const auto agent = Make();
  (void)agent->DoWork();
  agent->SaveFinal();
  EXPECT_TRUE(store_.Manifest().empty());
}

}  // namespace
}  // namespace tetrion::learner
