#pragma once

#include <memory>

#include "lib/frame/row_layout.h"
#include "lib/rl/trainer.h"
#include "lib/run/run_config.h"

namespace tetrion::learner {

// The run's algorithm over rows of `row`. `threads`: of the trainer's arithmetic. Throws
// Error(kUsage) for settings that do not fit together.
std::unique_ptr<Trainer> MakeTrainer(const RunConfig& run, const RowSpec& row, int threads);

}  // namespace tetrion::learner
