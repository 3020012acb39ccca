#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"
#include "lib/core/figure.h"
#include "lib/rl/train_batch.h"

namespace tetrion {

// Where a trainer's rows come from. Next blocks up to the source's own deadline (at most 100 ms).
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual TrainBatch Next() = 0;
  // Whether training is to end: a batch that has been used is not used again.
  virtual bool Ends() const { return false; }
};

// Most figures that a trainer may declare.
inline constexpr std::size_t kMaxTrainerFigures = 32;

// What one call of Step did.
struct UpdateStats {
  BatchStatus status = BatchStatus::kNotReady;  // counters below are valid when kReady
  int updates = 0;                              // optimiser steps taken
  int skipped = 0;  // optimiser steps that were not taken, or taken back, since a number in them
                    // was not finite
  std::string problem;  // of the first of them: what was not finite
  // Seconds spent per stage of this call: wait, sample, forward, backward, optimise. An update that
  // a device computes as a whole counts as forward.
  double wait_s = 0, sample_s = 0, forward_s = 0, backward_s = 0, optimise_s = 0;
  // Parts of forward_s where a world model learns: its own losses, what is imagined with it.
  double observe_s = 0, imagine_s = 0;
  // Of the last optimiser step that the call took, in the order of Trainer::Figures; where it took
  // none, of one that it did not take.
  std::array<double, kMaxTrainerFigures> figures{};
};

// A learning algorithm. One thread calls everything; PolicyBlob's bytes may be handed elsewhere.
class Trainer {
 public:
  virtual ~Trainer() = default;

  // Takes one batch from `source` and updates up to `reuse` times, fewer where the source ends.
  // `version` is the version the freshest published weights carry (for the lag). Blocks as long as
  // the source does plus the update.
  virtual UpdateStats Step(BatchSource& source, std::uint32_t version) = 0;
  // What UpdateStats::figures means: at most kMaxTrainerFigures, in static storage. Any thread.
  virtual std::span<const FigureInfo> Figures() const = 0;

  // The acting parameters as one flat f32 buffer, in the order NetworkPolicy::LoadWeights reads.
  virtual void PolicyBlob(std::vector<std::byte>& out) const = 0;
  virtual std::size_t PolicyBlobBytes() const = 0;

  virtual TrainerState Save() const = 0;
  // Throws Error(kConfig) naming the tensor when shapes or names do not fit this trainer.
  virtual void Load(const TrainerState& state) = 0;
};

}  // namespace tetrion
