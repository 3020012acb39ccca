#pragma once

#include <vector>

#include "lib/nn/dreamer/dreamer_layers.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Feature [..., D + Z] -> a predicted view [..., F]: symlog of numbers, logits of planes, grey
// values of pictures. Pictures mirror the encoder: a 5x5 map, then per stage upsampling by two (the
// first result, 10x10, cut to 9x10), a 5x5 convolution, norm and activation.
class DreamerDecoder {
 public:
  DreamerDecoder(const DreamerShape& shape, const DreamerTensors& tensors);
  torch::Tensor operator()(const torch::Tensor& feature) const;

 private:
  torch::Tensor Map(const torch::Tensor& feature) const;       // [N, D + Z] -> [N, 5, 5, C]
  torch::Tensor Pictures(const torch::Tensor& feature) const;  // [N, D + Z] -> [N, 72 * 80]

  const DreamerShape shape_;
  DreamerHead numbers_;  // of views that are no pictures

  torch::Tensor deter_weight_, deter_bias_;  // D -> the map, block by block
  DreamerDense stoch_;                       // Z -> 2 U
  DreamerDense map_;                         // 2 U -> the map; norm over channels
  std::vector<DreamerDense> stages_;         // convolutions, in the order in which they compute
  torch::Tensor out_weight_, out_bias_;      // the last one, to one channel
};

// [N, H, W, C] -> [N, 2 H, 2 W, C], each cell four times.
torch::Tensor UpsampleTwice(const torch::Tensor& x);

}  // namespace tetrion
