#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/dreamer/step_slopes.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// The pieces of a flat buffer as tensors. A tensor is a view: what the owner of the buffer writes,
// it shows, and its gradient is added to the buffer of gradients. Both outlive the tensors.
class DreamerTensors {
 public:
  // `parameters` begins with the floats at `offset` of the layout's buffer; pieces outside it are
  // left out. `gradients` is empty (inference) or as long as `parameters`. `device`: whose memory
  // both are.
  DreamerTensors(const ParameterLayout& layout, std::size_t offset, std::span<float> parameters,
                 std::span<float> gradients, torch::Device device = torch::kCPU);

  // The piece called `name`; an undefined tensor where there is none.
  torch::Tensor Find(const std::string& name) const;

 private:
  std::map<std::string, torch::Tensor> tensors_;
};

// A hidden layer: x [..., in] -> silu(norm(x W^T + b)) [..., out].
struct DreamerDense {
  DreamerDense() = default;
  DreamerDense(const DreamerTensors& tensors, const std::string& name);
  torch::Tensor operator()(const torch::Tensor& x) const;
  torch::Tensor Activate(const torch::Tensor& x) const;  // norm and activation alone
  // The layer where a sequence takes it step by step.
  DreamerDense OverSteps() const;

  torch::Tensor weight, bias, scale, shift;
  StepSlopes steps;
};

// Hidden layers one behind the other.
struct DreamerMlp {
  DreamerMlp() = default;
  DreamerMlp(const DreamerTensors& tensors, const std::string& module, std::int64_t layers);
  torch::Tensor operator()(torch::Tensor x) const;

  std::vector<DreamerDense> layers;
};

// Hidden layers and a linear one: x [..., in] -> [..., out].
struct DreamerHead {
  DreamerHead() = default;
  DreamerHead(const DreamerTensors& tensors, const std::string& module, std::int64_t layers);
  torch::Tensor operator()(const torch::Tensor& x) const;

  DreamerMlp hidden;
  torch::Tensor weight, bias;
};

// A critic on a buffer of its own, as the slow one is: `parameters` is as long as
// DreamerModule(layout, "value"). Feature [..., D + Z] -> logits [..., 255].
DreamerHead MakeDreamerCritic(const DreamerShape& shape, std::span<float> parameters,
                              std::span<float> gradients = {}, torch::Device device = torch::kCPU);

}  // namespace tetrion
