#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/replay/latents.h"
#include "lib/rl/dreamer/dreamer_settings.h"
#include "lib/rl/dreamer/laprop.h"
#include "lib/rl/dreamer/return_scale.h"
#include "lib/rl/dreamer/update_place.h"
#include "lib/rl/gradient_sync.h"
#include "lib/rl/sequence_batch.h"
#include "lib/rl/trainer.h"

namespace tetrion {

// All that an update changes.
struct DreamerState {
  std::vector<float> parameters, mean, square;  // as DreamerLayout; LaProp's of each
  std::vector<float> slow;                      // the slow critic's parameters
  ReturnScale::Range range;
  std::int64_t updates = 0;
};

struct DreamerEngineConfig {
  DreamerSettings settings;
  std::uint64_t seed = 1;  // of samples
  DreamerShape shape;
};

// Keeps a DreamerState and updates it. Trainer thread.
class DreamerEngine {
 public:
  virtual ~DreamerEngine() = default;

  // One update on what the batch holds. Fills `stats` but for its counters. False where the step
  // was not taken and nothing has changed: stats.problem names the first thing that was not
  // finite, or nothing where no row of the batch is an episode's, which makes no figures either.
  // Throws the Errors of lib/rl/torch/update_failures.h.
  virtual bool Update(UpdateStats& stats) = 0;
  // Behind rows 1..T of the last update's batch; the host's memory, the engine's until the next
  // update.
  virtual LatentColumns latents() = 0;

  virtual DreamerState Read() const = 0;
  // Sizes are the engine's.
  virtual void Write(const DreamerState& state) = 0;
  // The first parameters.
  virtual void ReadParameters(std::span<float> out) const = 0;
};

// On the CPU, on the calling thread's share of the tensor library. `batch` outlives the engine, as
// for MakeDeviceEngine.
std::unique_ptr<DreamerEngine> MakeHostEngine(const DreamerEngineConfig& config,
                                              const DreamerState& state, SequenceBatch& batch,
                                              std::unique_ptr<GradientSync> sync);
// On a device, for one learner.
std::unique_ptr<DreamerEngine> MakeDeviceEngine(const DreamerEngineConfig& config,
                                                const DreamerState& state, SequenceBatch& batch,
                                                std::unique_ptr<UpdatePlace> place);

// LaProp's part of the settings.
LaPropConfig OptimiserOf(const DreamerSettings& settings);

}  // namespace tetrion
