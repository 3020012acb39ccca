#include "lib/rl/dreamer/laprop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lib/core/check.h"
#include "lib/rl/adam.h"

namespace tetrion {

LaProp::LaProp(const LaPropConfig& config, const ParameterLayout& layout)
    : config_(config), layout_(layout), mean_(FloatsOf(layout), 0.0F), square_(mean_) {}

double LaPropRate(const LaPropConfig& config, std::int64_t steps) {
  const auto done = static_cast<double>(steps), warmup = static_cast<double>(config.warmup_updates);
  return done >= warmup ? config.learning_rate : config.learning_rate * done / warmup;
}

LaPropStep LaProp::Step(std::span<float> parameters, std::span<const float> gradients) {
  TETRION_CHECK(parameters.size() == mean_.size() && gradients.size() == mean_.size(),
                "LaProp was made for another parameter count");
  LaPropStep step;
  std::vector<float> scales(layout_.size(), 1.0F);
  for (std::size_t i = 0; i < layout_.size(); ++i) {
    const ParameterInfo& piece = layout_[i];
    const double norm = GlobalNorm(gradients.subspan(piece.offset, piece.size));
    step.grad_norm = std::hypot(step.grad_norm, norm);
    double clipped = norm;
    if (config_.agc > 0) {
      const double weight = GlobalNorm(parameters.subspan(piece.offset, piece.size));
      clipped = std::min(norm, config_.agc * std::max(config_.agc_least_norm, weight));
    }
    if (norm > clipped) scales[i] = static_cast<float>(clipped / norm);
    if (step.problem.empty() && (!std::isfinite(norm) || clipped > kGreatestClippedNorm)) {
      step.problem = "the gradient of " + piece.name;
    }
  }
  if (!step.problem.empty()) return step;
  const auto rate = static_cast<float>(LearningRate());
  ++steps_;
  const auto n = static_cast<double>(steps_);
  const auto correct1 = static_cast<float>(1.0 / (1.0 - std::pow(config_.beta1, n)));
  const auto correct2 = static_cast<float>(1.0 / (1.0 - std::pow(config_.beta2, n)));
  const auto old1 = static_cast<float>(config_.beta1), new1 = static_cast<float>(1 - config_.beta1);
  const auto old2 = static_cast<float>(config_.beta2), new2 = static_cast<float>(1 - config_.beta2);
  const auto epsilon = static_cast<float>(config_.epsilon);
  for (std::size_t piece = 0; piece < layout_.size(); ++piece) {
    const std::size_t end = layout_[piece].offset + layout_[piece].size;
    for (std::size_t i = layout_[piece].offset; i < end; ++i) {
      const float g = gradients[i] * scales[piece];
      square_[i] = old2 * square_[i] + new2 * (g * g);
      mean_[i] = old1 * mean_[i] + new1 * (g / (std::sqrt(square_[i] * correct2) + epsilon));
      parameters[i] -= rate * (mean_[i] * correct1);
    }
  }
  return step;
}

}  // namespace tetrion
