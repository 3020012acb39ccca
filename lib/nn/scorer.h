#pragma once

#include <memory>

#include "lib/nn/network.h"

namespace tetrion {

// Scores every action of a view that shows what it leads to (ObsSpec::action_floats, F below: views
// `afterstates` and `afterstates-dt` of placements, A = 40 actions, and `drops` of moves, A = 8)
// with one small shared network:
//
//   after [N, A, F] -> H -+-> SiLU -> H -> SiLU -> 1 = logits [N, A]
//   state [N, S] ----> H -'
//   state [N, S] -> 2 H -> SiLU -> 2 H -> SiLU -> 1 = value [N]
//
// H is config.scorer_units, a multiple of kScorerUnitsStep.
// The view is f32[A*F] followed by f32[S]. Rows of illegal placements are skipped, and placements
// of one state with the same afterstate (symmetric pieces) are computed once: about 23 rows of 40.
// Rows are worked on a few at a time, so that their activations stay in the cache. Forward keeps
// what the value's layers give before SiLU and nothing of the policy's, which would go through
// memory: Backward computes that again for the rows that have a slope, which are few once a policy
// has learnt.
std::unique_ptr<Network> MakeScorer(const NetworkConfig& config, const EnvSpec& env);

}  // namespace tetrion
