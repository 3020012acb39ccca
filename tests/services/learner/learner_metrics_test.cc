#include "services/learner/learner_metrics.h"

#include <cmath>
#include <string>

#include "tests/services/learner/fake_trainer.h"
#include "tests/services/learner/ingest_fixture.h"

namespace tetrion::learner {
namespace {

class LearnerMetricsTest : public IngestFixture {
 protected:
  LearnerMetricsTest()
      : checkpoints_(folder_.path(), 3, [this](double seconds) { metrics_.OnCheckpoint(seconds); }),
        metrics_(registry_, 3, kFakeFigures) {}

  void Refresh() {
    metrics_.Refresh(*replay_, memory_->memory_bytes(), 1024, progress_, *agent_, inference_,
                     checkpoints_, 4.0);
  }
  // Value of the series with exactly this name and these labels, as the scrape shows it.
  double Scraped(const std::string& series) {
    const std::string text = "\n" + registry_.SerializeText();
    const std::size_t at = text.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series << " is not in\n" << text;
    return at == std::string::npos ? -1.0 : std::stod(text.substr(at + series.size() + 2));
  }

  ScratchDir folder_;
  MetricsRegistry registry_;
  InferenceAgent inference_{{.max_lanes = 2}, layout_, {}, streams_};
  CheckpointAgent checkpoints_;
  TrainerProgress progress_;
  LearnerMetrics metrics_;
};

TEST_F(LearnerMetricsTest, ShardsShowWhatTheReplayHolds) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 1}});
  worker->Write(6);
  Cycle();
  Refresh();
  EXPECT_EQ(Scraped("tetrion_replay_rows{shard=\"0\"}"), 0);
  EXPECT_EQ(Scraped("tetrion_replay_rows{shard=\"1\"}"), 4);
  EXPECT_EQ(Scraped("tetrion_replay_committed_rows{shard=\"1\"}"), 4);
  EXPECT_EQ(Scraped("tetrion_replay_commit_lag_rows{shard=\"1\"}"), 2);
  EXPECT_EQ(Scraped("tetrion_replay_capacity_rows{shard=\"1\"}"), 1024);
  EXPECT_EQ(Scraped("tetrion_replay_bytes{shard=\"0\"}") * 3,
            static_cast<double>(memory_->memory_bytes()));
}

TEST_F(LearnerMetricsTest, BacklogOfARingIsWhatTheLimiterKeepsOut) {
  Build(/*batch_windows=*/1, &MonotonicClock::Get());
  auto worker = MakeWorker(1);
  List({{worker->path(), 2}});
  worker->Write(20);
  Cycle();
  Refresh();
  EXPECT_EQ(Scraped("tetrion_ring_used_rows{shard=\"2\"}"), 20 - 12);
  EXPECT_EQ(Scraped("tetrion_ring_capacity_rows{shard=\"2\"}"), 256);
  EXPECT_EQ(Scraped("tetrion_ring_capacity_rows{shard=\"1\"}"), 0);
  EXPECT_GT(Scraped("tetrion_replay_lease_wait_seconds_total"), 0);
}

TEST_F(LearnerMetricsTest, CountersFollowTheAgentsAndDoNotCountTwice) {
  List({});
  Cycle(1);
  auto good = MakeWorker(1), bad = MakeWorker(2), astray = MakeWorker(3);
  List({{good->path(), 0},
        {bad->path(), 1},
        {astray->path(), 3},
        {TestWorker::PathOf(dir_.path(), 4), 2}});
  good->Write(64);
  bad->Write(1, [](RowView& row) { row.action[0] = kActions; });
  Cycle();
  progress_.updates = 52;
  progress_.resumed = 40;  // of another process
  progress_.batches = 4;
  progress_.windows = 8;
  progress_.not_ready = 3;
  progress_.skipped = 2;
  progress_.version = 1005;
  Refresh();
  Refresh();
  EXPECT_EQ(Scraped("tetrion_learner_updates_total"), 12);
  EXPECT_EQ(Scraped("tetrion_learner_weights_published_total"), 4);
  EXPECT_EQ(Scraped("tetrion_replay_sampled_sequences_total"), 8);
  EXPECT_EQ(Scraped("tetrion_replay_not_ready_total"), 3);
  EXPECT_EQ(Scraped("tetrion_learner_skipped_updates_total"), 2);
  EXPECT_EQ(Scraped("tetrion_learner_policy_version"), 1005);
  EXPECT_EQ(Scraped("tetrion_learner_rings_quarantined_total"), 1);
  EXPECT_EQ(Scraped("tetrion_learner_rings_unattachable_total"), 1);
  EXPECT_EQ(Scraped("tetrion_learner_rings{state=\"attached\"}"), 1);
  EXPECT_EQ(Scraped("tetrion_learner_rings{state=\"waiting\"}"), 1);
  EXPECT_EQ(Scraped("tetrion_replay_samples_per_insert"), 0.5);
  progress_.updates = 55;
  Refresh();
  EXPECT_EQ(Scraped("tetrion_learner_updates_total"), 15);
  EXPECT_EQ(FiguresOf(progress_, *agent_, inference_, checkpoints_)["updates"], 55);
}

TEST_F(LearnerMetricsTest, TheBuildsTimeIsShown) {
  metrics_.OnBuilt(2.5);
  EXPECT_EQ(Scraped("tetrion_learner_build_seconds"), 2.5);
}

TEST_F(LearnerMetricsTest, UpdatesFillTheStagesAndTheLosses) {
  UpdateStats stats = {.status = BatchStatus::kReady,
                       .updates = 1,
                       .wait_s = 8,
                       .sample_s = 1,
                       .forward_s = 2,
                       .backward_s = 3,
                       .optimise_s = 4};
  Figure(stats, "policy_loss") = 0.5;
  Figure(stats, "value_loss") = 2;
  Figure(stats, "entropy") = 1.25;
  Figure(stats, "loss") = 3;
  Figure(stats, "grad_norm") = 0.75;
  Figure(stats, "explained_variance") = 0.875;
  metrics_.OnUpdate(stats);
  metrics_.OnWait(0.5);
  metrics_.OnPublish(0.25);
  EXPECT_EQ(Scraped("tetrion_learner_stage_seconds_sum{stage=\"wait\"}"), 8.5);
  EXPECT_EQ(Scraped("tetrion_learner_loss{part=\"policy\"}"), 0.5);
  EXPECT_EQ(Scraped("tetrion_learner_loss{part=\"value\"}"), 2);
  EXPECT_EQ(Scraped("tetrion_learner_loss{part=\"total\"}"), 3);
  EXPECT_EQ(Scraped("tetrion_learner_entropy"), 1.25);
  EXPECT_EQ(Scraped("tetrion_learner_grad_norm"), 0.75);
  EXPECT_EQ(Scraped("tetrion_learner_explained_variance"), 0.875);
  EXPECT_EQ(Scraped("tetrion_learner_stage_seconds_sum{stage=\"backward\"}"), 3);
  EXPECT_EQ(Scraped("tetrion_learner_stage_seconds_count{stage=\"wait\"}"), 2);
  EXPECT_EQ(Scraped("tetrion_learner_stage_seconds_sum{stage=\"publish\"}"), 0.25);
  EXPECT_EQ(Scraped("tetrion_learner_update_seconds_sum"), 10);  // waiting is no part of it
}

TEST_F(LearnerMetricsTest, UpdateThatIsNotTakenLeavesTheFiguresOfTheOneBefore) {
  UpdateStats stats = {.status = BatchStatus::kReady, .updates = 1};
  Figure(stats, "policy_loss") = 0.5;
  metrics_.OnUpdate(stats);
  stats = {.status = BatchStatus::kReady, .skipped = 1};
  Figure(stats, "policy_loss") = std::nan("");
  metrics_.OnUpdate(stats);
  EXPECT_EQ(Scraped("tetrion_learner_loss{part=\"policy\"}"), 0.5);
}

TEST_F(LearnerMetricsTest, EachCheckpointIsObservedOnceHoweverOftenIsScraped) {
  Refresh();
  EXPECT_EQ(Scraped("tetrion_learner_checkpoint_seconds_count"), 0);
  for (const int updates : {1, 2}) {
    checkpoints_.WriteNow({.tensors = {{.name = "policy.w", .shape = {1}, .data = {1}}}},
                          {.updates = updates});
  }
  Refresh();
  Refresh();
  EXPECT_EQ(Scraped("tetrion_learner_checkpoint_seconds_count"), 2);
}

TEST_F(LearnerMetricsTest, ACheckpointIsAsOldAsTheUpdatesThatItLacks) {
  progress_.updates = 2;
  checkpoints_.WriteNow({.tensors = {{.name = "policy.w", .shape = {1}, .data = {1}}}},
                        {.updates = 2});
  Refresh();
  EXPECT_EQ(Scraped("tetrion_learner_checkpoint_age_seconds"), 0);
  progress_.updates = 3;
  Refresh();
  EXPECT_GT(Scraped("tetrion_learner_checkpoint_age_seconds"), 0);
}

}  // namespace
}  // namespace tetrion::learner
