#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tetrion {

// The mean of weights over about the last `updates` optimiser steps, which plays better than the
// weights of one step, whose noise it leaves out (Polyak and Juditsky, Acceleration of Stochastic
// Approximation by Averaging, 1992), and over about the last eighth of all steps while that is
// less, so that weights from before much was learnt have hardly a part in it however early it is
// asked for (the polynomial decay of Shamir and Zhang, Stochastic Gradient Descent for Non-smooth
// Optimization, 2013). Each step counts 1 / span and older ones fade; of a long span every so many
// steps are taken, since a share below 1 / kMostTaken would be lost in a float's rounding.
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
    const std::uint64_t most = (static_cast<std::uint64_t>(step) + kStepsASpan - 1) / kStepsASpan;
    const std::uint64_t span = std::min(updates_, most);
    const std::uint64_t stride = std::max<std::uint64_t>(span / kMostTaken, 1);
    if (static_cast<std::uint64_t>(step) % stride != 0) return;
    const float share = static_cast<float>(stride) / static_cast<float>(span);
    for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += share * (weights[i] - mean_[i]);
  }

 private:
  static constexpr std::uint64_t kStepsASpan = 8;    // all steps are eight spans
  static constexpr std::uint64_t kMostTaken = 4096;  // of a span

  const std::uint64_t updates_;
  std::vector<float> mean_;
};

}  // namespace tetrion
