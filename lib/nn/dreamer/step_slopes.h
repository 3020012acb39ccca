#pragma once

#include <optional>
#include <vector>

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// What the backward passes of a layer's steps have left, in the same order.
struct KeptSteps : torch::CustomClassHolder {
  std::vector<torch::Tensor> inputs;  // [N, in]
  std::vector<torch::Tensor> shared;  // [N, X], of a block layer that has them
  std::vector<torch::Tensor> slopes;  // [N, out], of the product
  std::vector<torch::Tensor> scales;  // [parts, out], whose sum over all is the scale's slope
};
using KeptStepsPointer = c10::intrusive_ptr<KeptSteps>;

// The slopes of a layer's parameters where a sequence takes the layer step by step. Found step by
// step they are a product of few rows each and an addition to what the later steps have given.
// Instead the backward pass of every step leaves here what its part is made of, and after the last
// of them, which is the sequence's first step, one product over all rows gives the slopes.
//
// A copy gathers with its original. For one backward pass: the next sequence takes a new one.
class StepSlopes {
 public:
  // Gathers nothing: every step adds its slopes to the parameters' by itself.
  StepSlopes() = default;
  // Of a layer with a weight as of Linear [out, in] or BlockLinear [G, in + X, out]. `bias` and
  // `scale` may be undefined. `plain`: the parameters are f32 of the CPU, and kernels of our own
  // take their product. Gathers nothing where no gradient is asked for.
  StepSlopes(const torch::Tensor& weight, const torch::Tensor& bias, const torch::Tensor& scale,
             bool plain);

  bool gathers() const { return anchor_.defined(); }
  // An input of every step's node, without values: the slopes are taken when all of them are done.
  const torch::Tensor& anchor() const { return anchor_; }
  // Null where nothing is gathered.
  const KeptStepsPointer& kept() const { return kept_; }

 private:
  torch::Tensor anchor_;
  KeptStepsPointer kept_;
};

// A node of the differentiation takes no undefined tensor.
std::optional<torch::Tensor> Optional(const torch::Tensor& tensor);

// What a node of the differentiation keeps of a StepSlopes, and finds again in its backward pass;
// null where nothing is gathered.
void Keep(torch::autograd::AutogradContext* context, const KeptStepsPointer& steps);
KeptStepsPointer KeptOf(torch::autograd::AutogradContext* context);

// Linear and BlockLinear by operations of the tensor library, gathering for `steps`, which gathers.
// x [N, in], shared [N, X] or undefined -> [N, out]; `bias` may be undefined.
torch::Tensor StepLinear(const torch::Tensor& x, const torch::Tensor& weight,
                         const torch::Tensor& bias, const StepSlopes& steps);
torch::Tensor StepBlockLinear(const torch::Tensor& x, const torch::Tensor& shared,
                              const torch::Tensor& weight, const torch::Tensor& bias,
                              const StepSlopes& steps);
// The product alone: x [N, G in], shared [N, X] or undefined, weight [G, in + X, out] -> [N, G
// out]. Differentiable.
torch::Tensor BlockProduct(const torch::Tensor& x, const torch::Tensor& shared,
                           const torch::Tensor& weight);

}  // namespace tetrion
