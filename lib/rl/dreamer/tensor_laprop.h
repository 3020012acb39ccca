#pragma once

#include <vector>

#include "lib/nn/parameters.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/laprop.h"

namespace tetrion {

// LaProp (lib/rl/dreamer/laprop.h) on one flat buffer of a device, by operations that read nothing
// on the host. Tensors keep their addresses.
class TensorLaProp {
 public:
  // `parameters` and `gradients` [n] f32 in the layout's order, of one device.
  TensorLaProp(const LaPropConfig& config, const ParameterLayout& layout,
               const torch::Tensor& parameters, const torch::Tensor& gradients);

  // A step where `ready`, a bool scalar, holds and no gradient forbids it; else nothing changes.
  struct Step {
    torch::Tensor norms;  // [pieces] of the gradients, before clipping; NaN where one forbids it
    torch::Tensor taken;  // a bool scalar
  };
  Step Take(const torch::Tensor& ready);

  const torch::Tensor& mean() const { return mean_; }      // [n]
  const torch::Tensor& square() const { return square_; }  // [n]
  const torch::Tensor& steps() const { return steps_; }    // [1] i64

 private:
  const LaPropConfig config_;
  torch::Tensor parameters_, gradients_, mean_, square_, steps_;
  std::vector<torch::Tensor> parameter_pieces_, gradient_pieces_;  // of the buffers
};

}  // namespace tetrion
