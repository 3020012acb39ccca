#pragma once

#include <cstdint>

#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// The recurrent step: a gated unit whose matrices are block-diagonal. Each of its G blocks sees its
// part of deter and all of x = (deter, stoch and action, a hidden layer each).
class DreamerCore {
 public:
  DreamerCore(const DreamerShape& shape, const DreamerTensors& tensors);

  // What the step takes of an action: [..., A] -> [..., U]. It knows no state: actions of a known
  // sequence are taken at once.
  torch::Tensor ActionTerm(const torch::Tensor& action) const;
  // deter [N, D], stoch [N, S, C] and the action's term [N, U] -> deter [N, D].
  torch::Tensor operator()(const torch::Tensor& deter, const torch::Tensor& stoch,
                           const torch::Tensor& action_term) const;
  // The unit for the steps of one sequence and its backward pass.
  DreamerCore OverSteps() const;

 private:
  DreamerSize size_;
  DreamerDense deter_, stoch_, action_;  // -> U each
  DreamerDense hidden_;                  // weight [G, D/G + 3 U, D/G]
  torch::Tensor gates_weight_;           // [G, D/G, 3 D/G]
  torch::Tensor gates_bias_;             // [3 D]
  StepSlopes gates_steps_;
};

// The sampled state's distribution after a view.
class DreamerPosterior {
 public:
  DreamerPosterior(const DreamerShape& shape, const DreamerTensors& tensors);
  // Embed's part of the first layer, [..., E] -> [..., U], which knows no state either.
  torch::Tensor EmbedTerm(const torch::Tensor& embed) const;
  // deter [..., D] and that term -> logits [..., S C].
  torch::Tensor operator()(const torch::Tensor& deter, const torch::Tensor& embed_term) const;
  // The layers for the steps of one sequence and its backward pass. deter is [N, D].
  DreamerPosterior OverSteps() const;

 private:
  std::int64_t deter_;
  DreamerHead head_;
  // For a sequence: deter's columns of the first layer, and who gathers the last layer's slopes.
  DreamerDense of_deter_;
  StepSlopes out_steps_;
};

}  // namespace tetrion
