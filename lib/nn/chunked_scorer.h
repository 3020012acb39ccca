#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/frame/specs.h"
#include "lib/nn/chunked_network.h"

namespace tetrion {

inline constexpr int kScorerValueTimes = 2;  // units of the value's network for one of the other

// What the networks scorer and columns have in common. Views begin with a row of action_floats
// floats for every action; the rest is the state.
class ChunkedScorer : public ChunkedNetwork {
 public:
  static constexpr int kChunk = 16;  // states

 protected:
  ChunkedScorer(const NetworkConfig& config, const EnvSpec& env, const std::string& name);

  // ChunkedNetwork::AllocateParameters, with orthogonal weights [in, out] and biases 0. The two
  // heads are named by their offsets: logits start near 0, so that the first policy is nearly
  // uniform.
  void AllocateWeights(const NetworkConfig& config, std::size_t policy_head,
                       std::size_t value_head);

  const float* StateOf(const float* view, std::int64_t state) const {
    return view + state * view_floats_ + std::int64_t{actions_} * action_floats_;
  }

  const int action_floats_;
  const std::int64_t state_floats_;
};

}  // namespace tetrion
