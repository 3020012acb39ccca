#pragma once

#include <string>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/run/run_config.h"

namespace tetrion {

// The checkpoint whose parameters a new run begins with. `from` is RUN or RUN/newest for the newest
// of that run, RUN/best for the one with the best mean return; RUN is a name below `runs_dir`,
// "latest", or a path. Throws Error(kUsage): no such run, no usable checkpoint, parameters that are
// not finite, or a network of another shape than that of `run`, with both.
Checkpoint LoadInitial(const std::string& runs_dir, const std::string& from, const RunConfig& run);

// `fresh`, a new trainer's state, with the tensors of `initial` that both have; where only `fresh`
// keeps a mean of its parameters, both mean and parameters are those of `initial` that play. The
// optimiser's (kOptimiserPrefixes) and all counters stay fresh.
TrainerState BegunWith(TrainerState fresh, const TrainerState& initial);

}  // namespace tetrion
