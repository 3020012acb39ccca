#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/rl/trainer.h"
#include "lib/weights/weights_slot.h"
#include "services/learner/checkpoint_agent.h"
#include "services/learner/training_watch.h"
#include "services/learner/versions.h"

namespace tetrion::learner {

// What the trainer has done so far.
struct TrainerProgress {
  std::uint64_t updates = 0;  // optimiser steps, including those before a resume
  std::uint64_t resumed = 0;  // those before it
  // Since this process started.
  std::uint64_t windows = 0;  // replay windows drawn
  std::uint64_t batches = 0;  // that taught something: each was published
  // Environment steps in these batches, each as often as it was drawn.
  std::uint64_t steps_trained = 0;
  std::uint64_t not_ready = 0;       // times there was no batch
  std::uint64_t skipped = 0;         // updates not taken, or taken back, for NaN or infinity
  std::uint32_t version = 0;         // newest published
  std::int64_t version_wait_ns = 0;  // without a number for the next one
  UpdateStats last;                  // of the last batch; its figures, of the last update taken
};

// Trains: one batch, up to `reuse` updates, weights published, now and then a checkpoint. Ends with
// an Error when training has diverged (training_watch.h); the weights are those before it. Also
// with one when the weights slot holds a version that the account has never reserved: no heartbeat
// would bring a higher one.
//
// Thread role: DoWork on the trainer thread. Publishing is one copy into the weights slot that
// waits for no reader, so the trainer does it itself.
class TrainerAgent final : public Agent {
 public:
  struct Config {
    int batch_steps = 0;    // T * B: environment steps of one batch
    int batch_windows = 1;  // replay windows of one batch
    EntropyRange entropy;   // what the policy's can be
    std::int64_t checkpoint_every_ns = 30 * kNanosPerSecond;
    std::string region;  // path of what the writer publishes in
  };
  struct Hooks {
    // Called after every batch, on the trainer thread; must be quick.
    std::function<void(const UpdateStats&)> on_update;
    // The same after a wait that ended without a batch.
    std::function<void(double seconds)> on_wait;
    // The same after weights were published.
    std::function<void(double seconds)> on_publish;
    // Completes a checkpoint's description: run, env, returns.
    std::function<CheckpointInfo()> describe;
  };
  // `resumed_updates`: counter of the checkpoint the trainer was loaded from. References outlive
  // the agent.
  TrainerAgent(const Config& config, Hooks hooks, Trainer& trainer, BatchSource& source,
               WeightsSlotWriter writer, const Versions& versions, CheckpointAgent& checkpoints,
               std::uint64_t resumed_updates);

  std::string name() const override { return "trainer"; }
  int DoWork() override;

  // Any thread.
  TrainerProgress Progress() const;
  // After the thread has ended: writes the final checkpoint, unless nothing was learnt at all.
  void SaveFinal();

 private:
  // One batch; returns how many, 0 without one.
  int Train();
  bool Publish();
  void CheckSlotIsNotAhead() const;
  // Hands a snapshot over where one is due and the last one written lacks updates.
  void CheckpointIfDue();
  CheckpointInfo Describe() const;

  const Config config_;
  const Hooks hooks_;
  Trainer& trainer_;
  BatchSource& source_;
  WeightsSlotWriter writer_;
  const Versions& versions_;
  CheckpointAgent& checkpoints_;
  TrainingWatch watch_;
  bool published_ = false;  // the present weights are in the slot
  std::int64_t next_checkpoint_ns_ = 0;
  std::vector<std::byte> blob_;

  mutable Mutex mu_;
  TrainerProgress progress_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::learner
