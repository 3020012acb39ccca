#pragma once

#include <vector>

#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// view [..., F] -> embed [..., E]. Numbers and planes: hidden layers. Pictures: per stage a 5x5
// convolution, a 2x2 pool, norm over channels and activation; the last pool of the 9 rows takes
// the odd row alone.
class DreamerEncoder {
 public:
  DreamerEncoder(const DreamerShape& shape, const DreamerTensors& tensors);
  torch::Tensor operator()(const torch::Tensor& view) const;

 private:
  torch::Tensor Pictures(const torch::Tensor& view) const;  // [N, 72 * 80] -> [N, E]

  const DreamerInput input_;
  DreamerMlp layers_;  // linear layers, or convolutions
};

// 2x2 pool of [N, H, W, C] with the greatest of each four, which share its gradient where they are
// equal; an odd last row or column is pooled alone.
torch::Tensor PoolTwoByTwo(const torch::Tensor& x);

}  // namespace tetrion
