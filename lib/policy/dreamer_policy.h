#pragma once

#include <cstdint>
#include <memory>

#include "lib/frame/specs.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/policy/policy.h"

namespace tetrion {

struct DreamerPolicyConfig {
  DreamerShape shape;      // of the environment's view and actions
  std::uint64_t seed = 1;  // with token and step, every latent and action drawn
  bool greedy = false;     // the most probable action instead of a draw
  int max_lanes = 1;       // most lanes of one Act
  int lane_ids = 1;        // lane ids are below it; a state is kept for each
};

// The policy of DreamerV3: a recurrent state per lane id that takes in the previous action and the
// observation, and an actor on that state.
//
//   state, previous action -> core -> deter' -+
//   record -> view -> encoder -> embed -------+-> posterior, drawn -> stoch' -> actor, drawn
//
// Acts at random until weights come. A value is asked of a critic, which learners keep to
// themselves: it is 0 here. Every buffer is allocated here.
std::unique_ptr<Policy> MakeDreamerPolicy(const DreamerPolicyConfig& config, const EnvSpec& env);

}  // namespace tetrion
