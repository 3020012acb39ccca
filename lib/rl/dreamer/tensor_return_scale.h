#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// ReturnScale (lib/rl/dreamer/return_scale.h) in a device's memory, by operations that read nothing
// on the host. What an update's returns make of the range counts once the update is taken.
class TensorReturnScale {
 public:
  TensorReturnScale(double rate, const torch::Device& device);

  // The scale with `returns` [H, N] of the starts whose `counts` [N] is 1, of which there is one at
  // least; a scalar.
  torch::Tensor Follow(const torch::Tensor& returns, const torch::Tensor& counts);
  // Keeps the range of the last Follow where `taken`, a bool scalar, holds.
  void Keep(const torch::Tensor& taken);
  const torch::Tensor& range() const { return range_; }  // [2] low and high; keeps its address

 private:
  const double rate_;
  torch::Tensor range_, next_;
};

}  // namespace tetrion
