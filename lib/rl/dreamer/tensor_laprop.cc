#include "lib/rl/dreamer/tensor_laprop.h"

#include <limits>

namespace tetrion {
namespace {

using torch::Tensor;

// Of each piece [pieces] f64, as the plain optimiser takes them.
Tensor Norms(const std::vector<Tensor>& pieces) {
  return torch::stack(at::_foreach_norm(pieces, /*ord=*/2, torch::kFloat64));
}

// 1 / (1 - beta^steps), in double until it is known.
Tensor Correction(double beta, const Tensor& steps) {
  return (1.0 / (1.0 - torch::pow(beta, steps))).to(torch::kFloat32);
}

}  // namespace

TensorLaProp::TensorLaProp(const LaPropConfig& config, const ParameterLayout& layout,
                           const Tensor& parameters, const Tensor& gradients)
    : config_(config),
      parameters_(parameters),
      gradients_(gradients),
      mean_(torch::zeros_like(parameters)),
      square_(torch::zeros_like(parameters)),
      steps_(torch::zeros({1}, parameters.options().dtype(torch::kInt64))) {
  for (const ParameterInfo& piece : layout) {
    const auto offset = static_cast<std::int64_t>(piece.offset),
               size = static_cast<std::int64_t>(piece.size);
    parameter_pieces_.push_back(parameters.narrow(0, offset, size));
    gradient_pieces_.push_back(gradients.narrow(0, offset, size));
  }
}

TensorLaProp::Step TensorLaProp::Take(const Tensor& ready) {
  const torch::NoGradGuard no_gradient;
  const Tensor norms = Norms(gradient_pieces_);
  Tensor clipped = norms;
  if (config_.agc > 0) {
    const Tensor weights = Norms(parameter_pieces_).clamp_min(config_.agc_least_norm);
    clipped = torch::minimum(norms, weights * config_.agc);
  }
  const Tensor fits = norms.isfinite() & (clipped <= kGreatestClippedNorm);
  const Tensor taken = fits.all() & ready;
  const Tensor scales = torch::where(norms > clipped, clipped / norms, torch::ones_like(norms));
  const std::vector<Tensor> scale = scales.to(torch::kFloat32).unbind();
  for (std::size_t i = 0; i < scale.size(); ++i) gradient_pieces_[i].mul_(scale[i]);
  const Tensor done = steps_[0].to(torch::kFloat64), count = done + 1.0;
  Tensor rate = torch::full_like(done, config_.learning_rate);
  if (config_.warmup_updates > 0) {
    const auto warmup = static_cast<double>(config_.warmup_updates);
    rate = rate * torch::clamp_max(done / warmup, 1.0);
  }
  const Tensor correct1 = Correction(config_.beta1, count),
               correct2 = Correction(config_.beta2, count);
  const Tensor square = square_ * config_.beta2 + (gradients_ * gradients_) * (1.0 - config_.beta2);
  const Tensor normed = gradients_ / (torch::sqrt(square * correct2) + config_.epsilon);
  const Tensor mean = mean_ * config_.beta1 + normed * (1.0 - config_.beta1);
  const Tensor parameters = parameters_ - mean * correct1 * rate.to(torch::kFloat32);
  square_.copy_(torch::where(taken, square, square_));
  mean_.copy_(torch::where(taken, mean, mean_));
  parameters_.copy_(torch::where(taken, parameters, parameters_));
  steps_.add_(taken);
  const Tensor nothing = torch::full_like(norms, std::numeric_limits<double>::quiet_NaN());
  // A norm that only a double holds is taken, too.
  const Tensor told = norms.clamp_max(std::numeric_limits<float>::max());
  return {.norms = torch::where(fits, told, nothing).to(torch::kFloat32), .taken = taken};
}

}  // namespace tetrion
