#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Whole layers as one step of the differentiation each, for f32 tensors on the CPU: products by
// lib/nn/dreamer/linear_kernels.h, a hidden layer's norm and activation on rows that are still in
// the cache.

// x [..., in], weight [out, in], bias [out] -> x W^T + b [..., out]; with `scale` [out] its
// silu(rms_norm(...)).
torch::Tensor LayerNode(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& scale = {});

// x [..., W], scale [W] -> silu(rms_norm(x)).
torch::Tensor NormSiluNode(const torch::Tensor& x, const torch::Tensor& scale);

// The block layer whose input is (x's block, shared) in every block: x [N, G in], shared [N, X] or
// undefined, weight [G, in + X, out], bias [G out] -> [N, G out].
torch::Tensor BlockLayerNode(const torch::Tensor& x, const torch::Tensor& shared,
                             const torch::Tensor& weight, const torch::Tensor& bias);

}  // namespace tetrion
