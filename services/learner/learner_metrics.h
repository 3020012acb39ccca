#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lib/metrics/figures.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/replay/gate.h"
#include "lib/rl/trainer.h"
#include "services/learner/checkpoint_agent.h"
#include "services/learner/inference_agent.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/trainer_agent.h"

namespace tetrion::learner {

// What lanes that the learner plays itself have counted; ingest has no part in their rows.
struct PlayedRows {
  std::uint64_t rows = 0;
  double limiter_wait_s = 0;
};

// What the agents have counted, for the heartbeat and the metrics alike. Any thread.
FigureValues<kLearnerFigures> FiguresOf(const TrainerProgress& progress, const IngestAgent& ingest,
                                        const InferenceAgent& inference,
                                        const CheckpointAgent& checkpoints,
                                        const PlayedRows& played = {});

// The learner's recorders. OnBuilt belongs to the thread that builds, OnUpdate to the trainer
// thread; Refresh may be called by one thread at a time and brings the scraped figures up to the
// agents' own counters.
class LearnerMetrics {
 public:
  // `trainer`: Trainer::Figures, of which those that name a metric are served.
  LearnerMetrics(MetricsRegistry& registry, int shards, std::span<const FigureInfo> trainer);

  void OnBuilt(double seconds) { build_s_.Set(seconds); }
  void OnUpdate(const UpdateStats& stats);
  // Trainer thread: a wait for rows that ended without a batch.
  void OnWait(double seconds) { wait_s_.Observe(seconds); }
  // Trainer thread.
  void OnPublish(double seconds) { publish_s_.Observe(seconds); }
  // Checkpoint thread.
  void OnCheckpoint(double seconds) { checkpoint_s_.Observe(seconds); }
  // Inference thread.
  void OnInference(double seconds) { inference_s_.Observe(seconds); }
  void Refresh(const ReplayGate& replay, std::uint64_t memory_bytes, std::uint64_t capacity_rows,
               const TrainerProgress& progress, const IngestAgent& ingest,
               const InferenceAgent& inference, const CheckpointAgent& checkpoints,
               double window_rows, const PlayedRows& played = {});

 private:
  struct Shard {
    HotGauge *rows, *committed, *capacity, *lag, *bytes, *ring_used, *ring_capacity;
  };

  std::vector<Shard> shards_;
  FigureRecorders figures_, trainer_figures_;
  // A new number that the status shows, too, is a figure with `.metric` (lib/metrics/figures.h) and
  // comes through figures_; one that is served alone is a member here.
  HotCounter &updates_, &inference_wait_, &version_wait_, &sampled_, &overwritten_, &not_ready_;
  HotCounter &quarantined_, &unattachable_, &doorbells_;
  HotHistogram& inference_s_;
  HotGauge &build_s_, &waiting_, &leaving_, &samples_per_insert_;
  HotHistogram &update_s_, &wait_s_, &sample_s_, &forward_s_, &backward_s_, &optimise_s_;
  HotHistogram &publish_s_, &checkpoint_s_;
};

}  // namespace tetrion::learner
