#pragma once

#include <cstdint>
#include <vector>

#include "lib/metrics/registry.h"
#include "lib/replay/gate.h"
#include "lib/rl/trainer.h"
#include "services/learner/checkpoint_agent.h"
#include "services/learner/inference_agent.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/trainer_agent.h"

namespace tetrion::learner {

// The learner's recorders. OnBuilt belongs to the thread that builds, OnUpdate to the trainer
// thread; Refresh may be called by one thread at a time and brings the scraped figures up to the
// agents' own counters.
class LearnerMetrics {
 public:
  LearnerMetrics(MetricsRegistry& registry, int shards);

  void OnBuilt(double seconds) { build_s_.Set(seconds); }
  void OnUpdate(const UpdateStats& stats);
  // Inference thread.
  void OnInference(double seconds) { inference_s_.Observe(seconds); }
  void Refresh(const ReplayGate& replay, std::uint64_t memory_bytes, std::uint64_t capacity_rows,
               const TrainerProgress& progress, const IngestAgent& ingest,
               const InferenceAgent& inference, const CheckpointAgent& checkpoints,
               double batch_rows);

 private:
  struct Shard {
    HotGauge *rows, *committed, *capacity, *lag, *bytes, *ring_used;
  };

  std::vector<Shard> shards_;
  HotCounter &answered_, &inference_wait_, &lost_;
  HotHistogram& inference_s_;
  HotGauge &build_s_, &streams_;
  HotCounter &updates_, &skipped_, &published_, &sampled_, &overwritten_, &not_ready_, &lease_wait_;
  HotCounter &quarantined_, &unattachable_;
  HotGauge &attached_, &waiting_, &leaving_;
  HotHistogram &update_s_, &wait_s_, &sample_s_, &forward_s_, &backward_s_, &optimise_s_;
  HotHistogram& checkpoint_s_;
  HotGauge &policy_loss_, &value_loss_, &total_loss_, &grad_norm_, &entropy_, &explained_;
  HotGauge &version_, &samples_per_insert_, &checkpoint_age_;
  std::uint64_t checkpoints_seen_ = 0;
};

}  // namespace tetrion::learner
