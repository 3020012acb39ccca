#pragma once

#include "lib/run/run_config.h"

namespace tetrion {

// Most that may be asked for.
inline constexpr int kMostTrainerThreads = 256;

// Threads of the trainer's arithmetic: `asked`, or where that is 0 one per usable CPU, 8 at most,
// where dividing a batch makes up for waking them, and 1 elsewhere. `run` is resolved. The learner
// trains with them, and `up` starts as many workers as they can use rows of.
int TrainerThreads(const RunConfig& run, int asked, int usable_cpus);

}  // namespace tetrion
