#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tetrion {

// The mean of weights over about the last `updates` optimiser steps, which plays better than the
// weights of one step, whose noise it leaves out (Polyak and Juditsky, Acceleration of Stochastic
// Approximation by Averaging, 1992). The mean of all steps while these are fewer; then each step
// counts 1 / updates and older ones fade.
class MeanWeights {
 public:
  // `updates` 0: there is no mean. `weights` are those before the first step.
  MeanWeights(std::uint64_t updates, std::span<const float> weights) : updates_(updates) {
    if (updates_ > 0) mean_.assign(weights.begin(), weights.end());
  }

  bool is_on() const { return updates_ > 0; }
  // Empty where there is none.
  std::span<float> values() { return mean_; }
  std::span<const float> values() const { return mean_; }

  // Adds the weights that optimiser step number `step`, 1 for the first, has left.
  void Add(std::span<const float> weights, std::int64_t step) {
    if (!is_on()) return;
    const std::uint64_t steps = std::min(updates_, static_cast<std::uint64_t>(step));
    const float share = 1.0F / static_cast<float>(steps);
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (weights[i] - mean_[i]);
  }

 private:
  const std::uint64_t updates_;
  std::vector<float> mean_;
};

}  // namespace tetrion
