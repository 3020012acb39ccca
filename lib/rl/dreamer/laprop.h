#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/parameters.h"

namespace tetrion {

struct LaPropConfig {
  double learning_rate = 4e-5;
  std::uint64_t warmup_updates = 1000;  // the rate rises from 0 over so many steps
  double agc = 0.3;  // bound of a piece's gradient over the norm of its parameters; 0: none
  double agc_least_norm = 1e-3;       // of parameters, in that bound
  double beta1 = 0.9, beta2 = 0.999;  // decay of the momentum, and of the squares
  double epsilon = 1e-20;             // beside the root of the squares
};

// Of the step behind `steps` others; 0 of the first where the rate rises.
double LaPropRate(const LaPropConfig& config, std::int64_t steps);

// Largest norm of a clipped gradient that a step is taken with: a float holds its square.
inline constexpr double kGreatestClippedNorm = 1e18;

// What a step did.
struct LaPropStep {
  double grad_norm = 0;  // of all parameters, before clipping
  std::string problem;   // empty: taken; else what was wrong, and nothing has changed
};

// LaProp (Ziyin et al., 2020), which has momentum behind the normalisation, over one flat buffer,
// with the gradient of each of the layout's pieces clipped by the norm of its parameters (Brock et
// al., adaptive gradient clipping, 2021). Parameters and moments stay finite: a step with a
// gradient that is not, or whose square is not, is not taken.
class LaProp {
 public:
  LaProp(const LaPropConfig& config, const ParameterLayout& layout);

  LaPropStep Step(std::span<float> parameters, std::span<const float> gradients);
  // Of the step to come.
  double LearningRate() const { return LaPropRate(config_, steps_); }

  std::span<float> mean() { return mean_; }
  std::span<const float> mean() const { return mean_; }
  std::span<float> square() { return square_; }
  std::span<const float> square() const { return square_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  const LaPropConfig config_;
  const ParameterLayout layout_;
  std::vector<float> mean_, square_;  // of normalised gradients, of clipped gradients' squares
  std::int64_t steps_ = 0;
};

}  // namespace tetrion
