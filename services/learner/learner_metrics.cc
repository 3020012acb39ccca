#include "services/learner/learner_metrics.h"

#include <atomic>
#include <string>

namespace tetrion::learner {

namespace {

double Relaxed(const std::atomic<std::uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

}  // namespace

FigureValues<kLearnerFigures> FiguresOf(const TrainerProgress& progress, const IngestAgent& ingest,
                                        const InferenceAgent& inference,
                                        const CheckpointAgent& checkpoints,
                                        const PlayedRows& played) {
  const IngestCounters& rows = ingest.counters();
  FigureValues<kLearnerFigures> values;
  values["updates"] = static_cast<double>(progress.updates);
  values["batches"] = static_cast<double>(progress.batches);
  values["steps_trained"] = static_cast<double>(progress.steps_trained);
  values["skipped_updates"] = static_cast<double>(progress.skipped);
  values["policy_version"] = progress.version;
  values["rings"] = Relaxed(rows.rings);
  values["rows_ingested"] = Relaxed(rows.rows) + static_cast<double>(played.rows);
  values["rows_lost"] = Relaxed(rows.rows_lost);
  values["streams"] = Relaxed(inference.counters().streams);
  values["rows_answered"] = Relaxed(inference.counters().rows);
  values["limiter_wait_s"] =
      static_cast<double>(rows.limited_ns.load()) * 1e-9 + played.limiter_wait_s;
  values["reader_wait_s"] = static_cast<double>(rows.leased_ns.load()) * 1e-9;
  values["checkpoints"] = static_cast<double>(checkpoints.written());
  values["checkpoint_age_s"] = checkpoints.Holds(progress.updates) ? 0.0 : checkpoints.AgeSeconds();
  return values;
}

LearnerMetrics::LearnerMetrics(MetricsRegistry& r, int shards, std::span<const FigureInfo> trainer)
    : figures_(r, kLearnerFigures),
      trainer_figures_(r, trainer),
      updates_(r.Counter("tetrion_learner_updates_total")),
      inference_wait_(r.Counter("tetrion_learner_inference_wait_seconds_total")),
      version_wait_(r.Counter("tetrion_learner_version_wait_seconds_total")),
      sampled_(r.Counter("tetrion_replay_sampled_sequences_total")),
      overwritten_(r.Counter("tetrion_replay_overwritten_windows_total")),
      not_ready_(r.Counter("tetrion_replay_not_ready_total")),
      quarantined_(r.Counter("tetrion_learner_rings_quarantined_total")),
      unattachable_(r.Counter("tetrion_learner_rings_unattachable_total")),
      doorbells_(r.Counter("tetrion_ring_doorbells_total")),
      inference_s_(r.Histogram("tetrion_learner_inference_seconds")),
      build_s_(r.Gauge("tetrion_learner_build_seconds")),
      waiting_(r.Gauge("tetrion_learner_rings", {"waiting"})),
      leaving_(r.Gauge("tetrion_learner_rings", {"leaving"})),
      samples_per_insert_(r.Gauge("tetrion_replay_samples_per_insert")),
      update_s_(r.Histogram("tetrion_learner_update_seconds")),
      wait_s_(r.Histogram("tetrion_learner_stage_seconds", {"wait"})),
      sample_s_(r.Histogram("tetrion_learner_stage_seconds", {"sample"})),
      forward_s_(r.Histogram("tetrion_learner_stage_seconds", {"forward"})),
      backward_s_(r.Histogram("tetrion_learner_stage_seconds", {"backward"})),
      optimise_s_(r.Histogram("tetrion_learner_stage_seconds", {"optimise"})),
      publish_s_(r.Histogram("tetrion_learner_stage_seconds", {"publish"})),
      checkpoint_s_(r.Histogram("tetrion_learner_checkpoint_seconds")) {
  TETRION_CHECK(trainer.size() <= kMaxTrainerFigures, "an update has no room for its figures");
  for (int s = 0; s < shards; ++s) {
    const std::string label = std::to_string(s);
    shards_.push_back({.rows = &r.Gauge("tetrion_replay_rows", {label}),
                       .committed = &r.Gauge("tetrion_replay_committed_rows", {label}),
                       .capacity = &r.Gauge("tetrion_replay_capacity_rows", {label}),
                       .lag = &r.Gauge("tetrion_replay_commit_lag_rows", {label}),
                       .bytes = &r.Gauge("tetrion_replay_bytes", {label}),
                       .ring_used = &r.Gauge("tetrion_ring_used_rows", {label}),
                       .ring_capacity = &r.Gauge("tetrion_ring_capacity_rows", {label})});
  }
}

void LearnerMetrics::OnUpdate(const UpdateStats& stats) {
  wait_s_.Observe(stats.wait_s);
  sample_s_.Observe(stats.sample_s);
  forward_s_.Observe(stats.forward_s);
  backward_s_.Observe(stats.backward_s);
  optimise_s_.Observe(stats.optimise_s);
  update_s_.Observe(stats.sample_s + stats.forward_s + stats.backward_s + stats.optimise_s);
  // Those of an update that was not taken say nothing of the policy that plays.
  if (stats.updates > 0) trainer_figures_.Set(stats.figures);
}

void LearnerMetrics::Refresh(const ReplayGate& replay, std::uint64_t memory_bytes,
                             std::uint64_t capacity_rows, const TrainerProgress& progress,
                             const IngestAgent& ingest, const InferenceAgent& inference,
                             const CheckpointAgent& checkpoints, double window_rows,
                             const PlayedRows& played) {
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    const ShardStats stats = replay.Stats(static_cast<int>(s));
    shards_[s].rows->Set(static_cast<double>(stats.valid_rows));
    shards_[s].committed->Set(static_cast<double>(stats.committed_rows));
    shards_[s].capacity->Set(static_cast<double>(capacity_rows));
    shards_[s].ring_used->Set(static_cast<double>(ingest.BacklogRows(static_cast<int>(s))));
    shards_[s].ring_capacity->Set(static_cast<double>(ingest.CapacityRows(static_cast<int>(s))));
    shards_[s].lag->Set(static_cast<double>(stats.written_rows - stats.committed_rows));
    shards_[s].bytes->Set(static_cast<double>(memory_bytes) / static_cast<double>(shards_.size()));
  }
  const FigureValues<kLearnerFigures> figures =
      FiguresOf(progress, ingest, inference, checkpoints, played);
  figures_.Set(figures.all());
  // Of this process, as every counter: a sum that fell to the resumed checkpoint's and was taken
  // for one that began anew would count all of it again.
  updates_.RaiseTo(static_cast<double>(progress.updates - progress.resumed));
  version_wait_.RaiseTo(static_cast<double>(progress.version_wait_ns) * 1e-9);
  sampled_.RaiseTo(static_cast<double>(progress.windows));
  overwritten_.RaiseTo(static_cast<double>(replay.overwritten_windows()));
  not_ready_.RaiseTo(static_cast<double>(progress.not_ready));
  quarantined_.RaiseTo(static_cast<double>(ingest.counters().quarantined.load()));
  unattachable_.RaiseTo(static_cast<double>(ingest.finder().given_up()));
  doorbells_.RaiseTo(static_cast<double>(ingest.doorbells()));
  waiting_.Set(static_cast<double>(ingest.finder().waiting()));
  leaving_.Set(static_cast<double>(ingest.counters().leaving.load()));
  inference_wait_.RaiseTo(static_cast<double>(inference.counters().wait_ns.load()) * 1e-9);
  const double rows = figures["rows_ingested"];
  samples_per_insert_.Set(rows > 0 ? static_cast<double>(progress.windows) * window_rows / rows
                                   : 0.0);
}

}  // namespace tetrion::learner
