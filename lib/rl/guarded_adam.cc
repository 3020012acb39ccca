#include "lib/rl/guarded_adam.h"

#include <algorithm>
#include <cmath>

#include "lib/core/check.h"
#include "lib/core/finite.h"

namespace tetrion {
namespace {

std::size_t ValueBegin(const Network& network) {
  std::size_t begin = network.parameters().size();
  bool value = false;
  for (const ParameterInfo& info : network.layout()) {
    const bool is_value = info.name.starts_with("value.");
    TETRION_CHECK(is_value || !value, "the value's parameters are a network's last");
    if (is_value && !value) begin = info.offset;
    value = is_value;
  }
  return begin;
}

// Name of the first tensor of `buffer` that is not finite; empty when all are.
std::string FirstNotFinite(const Network& network, std::span<const float> buffer) {
  for (const ParameterInfo& info : network.layout()) {
    if (!AllFinite(buffer.subspan(info.offset, info.size))) return info.name;
  }
  return "";
}

}  // namespace

GuardedAdam::GuardedAdam(const AdamConfig& config, double grad_clip, const Network& network)
    : grad_clip_(grad_clip),
      value_begin_(ValueBegin(network)),
      adam_(config, network.parameters().size()),
      parameters_(network.parameters().size()),
      mean_(parameters_),
      square_(parameters_) {}

AdamStep GuardedAdam::Step(Network& network, double learning_rate) {
  const std::span<float> gradients = network.gradients();
  const std::span<float> others = gradients.first(value_begin_);
  const std::span<float> value = gradients.subspan(value_begin_);
  const double others_norm = GlobalNorm(others), value_norm = GlobalNorm(value);
  AdamStep step = {.grad_norm = std::hypot(others_norm, value_norm), .problem = ""};
  if (!std::isfinite(step.grad_norm)) {
    step.problem = "the gradient of " + FirstNotFinite(network, gradients);
    return step;
  }
  Clip(others, others_norm);
  Clip(value, value_norm);
  Keep(network);
  adam_.Step(network.parameters(), gradients, learning_rate);
  // A square beyond a float's range spoils the next step, not this one.
  for (const std::span<const float> after :
       {std::span<const float>(network.parameters()), std::span<const float>(adam_.square())}) {
    const std::string name = FirstNotFinite(network, after);
    if (name.empty()) continue;
    Restore(network);
    step.problem = "parameter " + name + " or its moments after the optimiser's step";
    break;
  }
  return step;
}

void GuardedAdam::Clip(std::span<float> gradients, double norm) const {
  if (grad_clip_ <= 0 || norm <= grad_clip_) return;
  const auto scale = static_cast<float>(grad_clip_ / norm);
  for (float& gradient : gradients) gradient *= scale;
}

void GuardedAdam::Keep(const Network& network) {
  std::copy(network.parameters().begin(), network.parameters().end(), parameters_.begin());
  std::copy(adam_.mean().begin(), adam_.mean().end(), mean_.begin());
  std::copy(adam_.square().begin(), adam_.square().end(), square_.begin());
}

void GuardedAdam::Restore(Network& network) {
  std::copy(parameters_.begin(), parameters_.end(), network.parameters().begin());
  std::copy(mean_.begin(), mean_.end(), adam_.mean().begin());
  std::copy(square_.begin(), square_.end(), adam_.square().begin());
  adam_.set_steps(adam_.steps() - 1);
}

}  // namespace tetrion
