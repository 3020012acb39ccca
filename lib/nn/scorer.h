#pragma once

#include <memory>

#include "lib/nn/network.h"

namespace tetrion {

// Scores every placement of view `afterstates` with one small shared network:
//
//   after [N, 40, 16] -> 64 -+-> SiLU -> 64 -> SiLU -> 1 = logits [N, 40]
//   state [N, S] ------> 64 -'
//   state [N, S] -> 128 -> SiLU -> 128 -> SiLU -> 1 = value [N]
//
// The view is f32[40*16] followed by f32[S]. Rows of illegal placements are skipped, and placements
// of one state with the same afterstate (symmetric pieces) are computed once: about 23 rows of 40.
// States are worked on in chunks whose activations stay in the second-level cache.
std::unique_ptr<Network> MakeScorer(const NetworkConfig& config, const EnvSpec& env);

}  // namespace tetrion
