#include "services/learner/learner_metrics.h"

#include <string>

namespace tetrion::learner {

LearnerMetrics::LearnerMetrics(MetricsRegistry& r, int shards)
    : answered_(r.Counter("tetrion_learner_inference_rows_total")),
      inference_wait_(r.Counter("tetrion_learner_inference_wait_seconds_total")),
      lost_(r.Counter("tetrion_learner_rows_lost_total")),
      inference_s_(r.Histogram("tetrion_learner_inference_seconds")),
      build_s_(r.Gauge("tetrion_learner_build_seconds")),
      streams_(r.Gauge("tetrion_learner_streams")),
      updates_(r.Counter("tetrion_learner_updates_total")),
      skipped_(r.Counter("tetrion_learner_skipped_updates_total")),
      published_(r.Counter("tetrion_learner_weights_published_total")),
      sampled_(r.Counter("tetrion_replay_sampled_sequences_total")),
      overwritten_(r.Counter("tetrion_replay_overwritten_windows_total")),
      not_ready_(r.Counter("tetrion_replay_not_ready_total")),
      lease_wait_(r.Counter("tetrion_replay_lease_wait_seconds_total")),
      quarantined_(r.Counter("tetrion_learner_rings_quarantined_total")),
      unattachable_(r.Counter("tetrion_learner_rings_unattachable_total")),
      attached_(r.Gauge("tetrion_learner_rings", {"attached"})),
      waiting_(r.Gauge("tetrion_learner_rings", {"waiting"})),
      leaving_(r.Gauge("tetrion_learner_rings", {"leaving"})),
      update_s_(r.Histogram("tetrion_learner_update_seconds")),
      wait_s_(r.Histogram("tetrion_learner_stage_seconds", {"wait"})),
      sample_s_(r.Histogram("tetrion_learner_stage_seconds", {"sample"})),
      forward_s_(r.Histogram("tetrion_learner_stage_seconds", {"forward"})),
      backward_s_(r.Histogram("tetrion_learner_stage_seconds", {"backward"})),
      optimise_s_(r.Histogram("tetrion_learner_stage_seconds", {"optimise"})),
      checkpoint_s_(r.Histogram("tetrion_learner_checkpoint_seconds")),
      policy_loss_(r.Gauge("tetrion_learner_loss", {"policy"})),
      value_loss_(r.Gauge("tetrion_learner_loss", {"value"})),
      total_loss_(r.Gauge("tetrion_learner_loss", {"total"})),
      grad_norm_(r.Gauge("tetrion_learner_grad_norm")),
      entropy_(r.Gauge("tetrion_learner_entropy")),
      explained_(r.Gauge("tetrion_learner_explained_variance")),
      version_(r.Gauge("tetrion_learner_policy_version")),
      samples_per_insert_(r.Gauge("tetrion_replay_samples_per_insert")),
      checkpoint_age_(r.Gauge("tetrion_learner_checkpoint_age_seconds")) {
  for (int s = 0; s < shards; ++s) {
    const std::string label = std::to_string(s);
    shards_.push_back({.rows = &r.Gauge("tetrion_replay_rows", {label}),
                       .committed = &r.Gauge("tetrion_replay_committed_rows", {label}),
                       .capacity = &r.Gauge("tetrion_replay_capacity_rows", {label}),
                       .lag = &r.Gauge("tetrion_replay_commit_lag_rows", {label}),
                       .bytes = &r.Gauge("tetrion_replay_bytes", {label}),
                       .ring_used = &r.Gauge("tetrion_ring_used_rows", {label})});
  }
}

void LearnerMetrics::OnUpdate(const UpdateStats& stats) {
  wait_s_.Observe(stats.wait_s);
  sample_s_.Observe(stats.sample_s);
  forward_s_.Observe(stats.forward_s);
  backward_s_.Observe(stats.backward_s);
  optimise_s_.Observe(stats.optimise_s);
  update_s_.Observe(stats.sample_s + stats.forward_s + stats.backward_s + stats.optimise_s);
  policy_loss_.Set(stats.policy_loss);
  value_loss_.Set(stats.value_loss);
  total_loss_.Set(stats.total_loss);
  grad_norm_.Set(stats.grad_norm);
  entropy_.Set(stats.entropy);
  explained_.Set(stats.explained_variance);
}

void LearnerMetrics::Refresh(const ReplayGate& replay, std::uint64_t memory_bytes,
                             std::uint64_t capacity_rows, const TrainerProgress& progress,
                             const IngestAgent& ingest, const InferenceAgent& inference,
                             const CheckpointAgent& checkpoints, double batch_rows) {
  for (std::size_t s = 0; s < shards_.size(); ++s) {
    const ShardStats stats = replay.Stats(static_cast<int>(s));
    shards_[s].rows->Set(static_cast<double>(stats.valid_rows));
    shards_[s].committed->Set(static_cast<double>(stats.committed_rows));
    shards_[s].capacity->Set(static_cast<double>(capacity_rows));
    shards_[s].ring_used->Set(static_cast<double>(ingest.BacklogRows(static_cast<int>(s))));
    shards_[s].lag->Set(static_cast<double>(stats.written_rows - stats.committed_rows));
    shards_[s].bytes->Set(static_cast<double>(memory_bytes) / static_cast<double>(shards_.size()));
  }
  const double rows = static_cast<double>(ingest.counters().rows.load());
  updates_.RaiseTo(static_cast<double>(progress.updates));
  skipped_.RaiseTo(static_cast<double>(progress.skipped));
  published_.RaiseTo(static_cast<double>(progress.batches));
  sampled_.RaiseTo(static_cast<double>(progress.windows));
  overwritten_.RaiseTo(static_cast<double>(replay.overwritten_windows()));
  not_ready_.RaiseTo(static_cast<double>(progress.not_ready));
  lease_wait_.RaiseTo(static_cast<double>(ingest.counters().limited_ns.load()) * 1e-9);
  quarantined_.RaiseTo(static_cast<double>(ingest.counters().quarantined.load()));
  unattachable_.RaiseTo(static_cast<double>(ingest.finder().given_up()));
  attached_.Set(static_cast<double>(ingest.counters().rings.load()));
  waiting_.Set(static_cast<double>(ingest.finder().waiting()));
  leaving_.Set(static_cast<double>(ingest.counters().leaving.load()));
  lost_.RaiseTo(static_cast<double>(ingest.counters().rows_lost.load()));
  answered_.RaiseTo(static_cast<double>(inference.counters().rows.load()));
  inference_wait_.RaiseTo(static_cast<double>(inference.counters().wait_ns.load()) * 1e-9);
  streams_.Set(static_cast<double>(inference.counters().streams.load()));
  version_.Set(progress.version);
  samples_per_insert_.Set(rows > 0 ? static_cast<double>(progress.batches) * batch_rows / rows
                                   : 0.0);
  checkpoint_age_.Set(checkpoints.AgeSeconds());
  if (checkpoints.written() > checkpoints_seen_) checkpoint_s_.Observe(checkpoints.last_seconds());
  checkpoints_seen_ = checkpoints.written();
}

}  // namespace tetrion::learner
