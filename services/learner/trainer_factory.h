#pragma once

#include <memory>
#include <optional>

#include "lib/frame/row_layout.h"
#include "lib/replay/latents.h"
#include "lib/rl/dreamer/update_place.h"
#include "lib/rl/trainer.h"
#include "lib/run/run_config.h"
#include "lib/setup/device_choice.h"
#include "services/learner/replay_memory.h"
#include "services/learner/training_watch.h"

namespace tetrion::learner {

// LatentsOf, UpdatePlaceOf and MakeTrainer throw Error(kUsage) for DreamerV3 where the build is
// without the tensor library.

// What the run's algorithm keeps of its model's state beside each row, if it does.
std::optional<LatentSpec> LatentsOf(const RunConfig& run);
// What the entropy of the run's policy can be over all actions. DreamerV3's has a part of the
// uniform distribution always.
EntropyRange EntropyOf(const RunConfig& run);
// Where the run's updates are computed when it is not the CPU, else null. Throws Error(kUsage)
// where `choice` asks for a device and the algorithm computes its updates on the CPU.
std::unique_ptr<UpdatePlace> UpdatePlaceOf(const DeviceChoice& choice, const RunConfig& run,
                                           ReplayMemory& memory);
// The run's algorithm over rows of `row`. `threads`: of the trainer's arithmetic; `place`: where
// DreamerV3 computes its updates, null: on the CPU, as V-trace always does. Throws Error(kUsage)
// for settings that do not fit together.
std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, const RowSpec& row, int threads,
                                     std::unique_ptr<UpdatePlace> place = nullptr);

}  // namespace tetrion::learner
