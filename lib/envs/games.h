#pragma once

#include <memory>

#include "lib/envs/vec_env.h"

namespace tetrion {

// The environments behind the registry, one function an environment. `spec` is the environment's
// with its view filled in; `config` has been checked by the registry.
std::unique_ptr<VecEnv> MakeCartPole(EnvSpec spec, const EnvConfig& config);
std::unique_ptr<VecEnv> MakeTetris(EnvSpec spec, const EnvConfig& config);
std::unique_ptr<VecEnv> MakeTetrisPlacement(EnvSpec spec, const EnvConfig& config);

}  // namespace tetrion
