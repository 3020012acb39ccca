#include "lib/rl/dreamer/tensor_return_scale.h"

#include <limits>

#include "lib/rl/dreamer/return_scale.h"

namespace tetrion {
namespace {

using torch::Tensor;

// As Percentile of the first `last` + 1 of values in order; `last`, an f64 scalar.
Tensor PercentileOf(const Tensor& sorted, const Tensor& last, double q) {
  const Tensor place = last * q, below = place.floor();
  const Tensor ends = torch::stack({below, torch::minimum(below + 1, last)}).to(torch::kInt64);
  const Tensor values = sorted.index_select(0, ends);
  return torch::lerp(values[0], values[1], (place - below).to(torch::kFloat32));
}

}  // namespace

TensorReturnScale::TensorReturnScale(double rate, const torch::Device& device)
    : rate_(rate), range_(torch::zeros({2}, torch::TensorOptions().device(device))) {}

Tensor TensorReturnScale::Follow(const Tensor& returns, const Tensor& counts) {
  // Those that do not count come last, behind all that percentiles are taken of.
  const Tensor counted = returns.masked_fill(counts == 0, std::numeric_limits<float>::infinity());
  const Tensor sorted = std::get<0>(counted.flatten().sort());
  const Tensor last = (counts.sum(torch::kFloat64) * returns.size(0) - 1).clamp_min(0);
  const Tensor now = torch::stack(
      {PercentileOf(sorted, last, kLowReturns), PercentileOf(sorted, last, kHighReturns)});
  next_ = range_ * (1.0 - rate_) + now * rate_;
  return (next_[1] - next_[0]).clamp_min(kLeastReturnScale);
}

void TensorReturnScale::Keep(const Tensor& taken) {
  range_.copy_(torch::where(taken, next_, range_));
}

}  // namespace tetrion
