#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/network.h"
#include "lib/rl/adam.h"

namespace tetrion {

// What a step did.
struct AdamStep {
  double grad_norm = 0;  // of all parameters, before clipping
  std::string problem;   // empty: taken; else what was not finite, and nothing has changed
};

// Adam over a network's parameters, with clipped gradients, that leaves parameters and moments
// finite: a step with a gradient that is not finite is not taken, one that leaves anything behind
// that is not finite is taken back.
//
// The gradient is clipped in two groups: the parameters that the value alone uses (names beginning
// with "value.", the last ones of a network) and all others. Under one norm a large value error
// would shrink the policy's step, and a value that fits well would enlarge it at once, by as much
// as Adam's memory of larger gradients allows.
class GuardedAdam {
 public:
  // `grad_clip`: bound of either group's Euclidean norm; 0: none.
  GuardedAdam(const AdamConfig& config, double grad_clip, const Network& network);

  // Uses network.gradients() and clips them in place. `network` is the constructor's.
  AdamStep Step(Network& network, double learning_rate);

  Adam& adam() { return adam_; }
  const Adam& adam() const { return adam_; }

 private:
  void Clip(std::span<float> gradients, double norm) const;
  void Keep(const Network& network);
  void Restore(Network& network);

  const double grad_clip_;
  const std::size_t value_begin_;  // index of the flat buffer
  Adam adam_;
  // As they were before the step.
  std::vector<float> parameters_, mean_, square_;
};

}  // namespace tetrion
