#pragma once

#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/run/run_config.h"

namespace tetrion {

// What a run's settings mean in the modules' own terms; every program that needs an environment or
// a row of a run asks here, so that all of them get the same.

EnvConfig EnvConfigOf(const RunConfig& run);
// Throws Error(kUsage) for an unknown environment or view.
EnvSpec EnvSpecOf(const RunConfig& run);
RowSpec RowSpecOf(const RunConfig& run);

}  // namespace tetrion
