#include "lib/rl/dreamer/tensor_return_scale.h"

#include <algorithm>

#include "lib/rl/dreamer/return_scale.h"

namespace tetrion {
namespace {

using torch::Tensor;

// As Percentile of values [n] in order.
Tensor PercentileOf(const Tensor& sorted, double q) {
  const double place = q * static_cast<double>(sorted.numel() - 1);
  const auto below = static_cast<std::int64_t>(place);
  const std::int64_t above = std::min(below + 1, sorted.numel() - 1);
  return torch::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

}  // namespace

TensorReturnScale::TensorReturnScale(double rate, const torch::Device& device)
    : rate_(rate), range_(torch::zeros({2}, torch::TensorOptions().device(device))) {}

Tensor TensorReturnScale::Follow(const Tensor& returns) {
  const Tensor sorted = std::get<0>(returns.flatten().sort());
  const Tensor now =
      torch::stack({PercentileOf(sorted, kLowReturns), PercentileOf(sorted, kHighReturns)});
  next_ = range_ * (1.0 - rate_) + now * rate_;
  return (next_[1] - next_[0]).clamp_min(kLeastReturnScale);
}

void TensorReturnScale::Keep(const Tensor& taken) {
  range_.copy_(torch::where(taken, next_, range_));
}

}  // namespace tetrion
