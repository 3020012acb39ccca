#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"
#include "lib/rl/train_batch.h"

namespace tetrion {

// Where a trainer's rows come from. Next blocks up to the source's own deadline (at most 100 ms).
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual TrainBatch Next() = 0;
};

// What one call of Step did. All figures are of the last optimiser step of the call.
struct UpdateStats {
  BatchStatus status = BatchStatus::kNotReady;  // counters below are valid when kReady
  int updates = 0;                              // optimiser steps taken
  double policy_loss = 0, value_loss = 0, entropy = 0, total_loss = 0;
  double grad_norm = 0;             // of all parameters, before clipping
  double mean_rho = 0;              // mean clipped importance weight
  double clipped_fraction = 0;      // share of rho above rho_clip
  double explained_variance = 0;    // of the value targets
  double target_square = 0;         // mean square of the value targets
  double lag_p50 = 0, lag_p99 = 0;  // policy lag of the batch's rows, versions
  double learning_rate = 0;
  int skipped = 0;  // optimiser steps that were not taken, or taken back, since a number in them
                    // was not finite
  std::string problem;  // of the first of them: what was not finite
  // Seconds spent per stage of this call: wait, sample, forward, backward, optimise.
  double wait_s = 0, sample_s = 0, forward_s = 0, backward_s = 0, optimise_s = 0;
};

// A learning algorithm. One thread calls everything; PolicyBlob's bytes may be handed elsewhere.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // Takes one batch from `source` and updates up to `reuse` times. `version` is the version the
  // freshest published weights carry (for the lag). Blocks as long as the source does plus the
  // update.
  virtual UpdateStats Step(BatchSource& source, std::uint32_t version) = 0;

  // The acting parameters as one flat f32 buffer, in the order NetworkPolicy::LoadWeights reads.
  virtual void PolicyBlob(std::vector<std::byte>& out) const = 0;
  virtual std::size_t PolicyBlobBytes() const = 0;

  virtual TrainerState Save() const = 0;
  // Throws Error(kConfig) naming the tensor when shapes or names do not fit this trainer.
  virtual void Load(const TrainerState& state) = 0;
};

}  // namespace tetrion
