#pragma once

#include <memory>

#include "lib/rl/trainer.h"
#include "lib/run/run_config.h"

namespace tetrion::learner {

// The run's algorithm over the run's rows. `threads`: of the trainer's arithmetic. Throws
// Error(kUsage) for settings that do not fit together.
std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, int threads);

}  // namespace tetrion::learner
