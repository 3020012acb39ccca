#include "lib/rl/adam.h"

#include <cmath>

#include "lib/core/check.h"

namespace tetrion {

Adam::Adam(const AdamConfig& config, std::size_t size)
    : config_(config), mean_(size, 0.0F), square_(size, 0.0F) {}

void Adam::Step(std::span<float> parameters, std::span<const float> gradients,
                double learning_rate) {
  TETRION_CHECK(parameters.size() == mean_.size() && gradients.size() == mean_.size(),
                "Adam was made for another parameter count");
  ++steps_;
  const auto steps = static_cast<double>(steps_);
  const double correct1 = 1.0 - std::pow(config_.beta1, steps);
  const double correct2 = 1.0 - std::pow(config_.beta2, steps);
  const auto rate = static_cast<float>(learning_rate / correct1);
  const auto root2 = static_cast<float>(1.0 / std::sqrt(correct2));
  const auto decay = static_cast<float>(learning_rate * config_.weight_decay);
  const auto epsilon = static_cast<float>(config_.epsilon);
  const auto beta1 = static_cast<float>(config_.beta1), beta2 = static_cast<float>(config_.beta2);
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    const float g = gradients[i];
    mean_[i] += (1.0F - beta1) * (g - mean_[i]);
    square_[i] += (1.0F - beta2) * (g * g - square_[i]);
    // One sum: 1 - decay as a float would be 1 where a run has become long.
    parameters[i] -=
        decay * parameters[i] + rate * mean_[i] / (std::sqrt(square_[i]) * root2 + epsilon);
  }
}

double GlobalNorm(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;  // sums that do not wait for each other
  double sums[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      sums[k] += static_cast<double>(values[i + k]) * values[i + k];
    }
  }
  for (; i < values.size(); ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  double sum = 0;
  for (double part : sums) sum += part;
  return std::sqrt(sum);
}

}  // namespace tetrion
