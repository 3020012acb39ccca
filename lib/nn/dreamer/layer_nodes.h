#pragma once

#include "lib/nn/dreamer/step_slopes.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Whole layers as one step of the differentiation each, for f32 tensors on the CPU: products by
// lib/nn/dreamer/linear_kernels.h, a hidden layer's norm and activation on rows that are still in
// the cache. With `steps` that gather they leave their parameters' slopes there.

// x [..., in], weight [out, in], bias [out] -> x W^T + b [..., out]; with `scale` [out] its
// silu(rms_norm(...)).
torch::Tensor LayerNode(const torch::Tensor& x, const torch::Tensor& weight,
                        const torch::Tensor& bias, const torch::Tensor& scale = {},
                        const StepSlopes& steps = {});

// x [..., W], scale [W] -> silu(rms_norm(x)).
torch::Tensor NormSiluNode(const torch::Tensor& x, const torch::Tensor& scale,
                           const StepSlopes& steps = {});

// The block layer whose input is (x's block, shared) in every block: x [N, G in], shared [N, X] or
// undefined, weight [G, in + X, out], bias [G out] -> [N, G out].
torch::Tensor BlockLayerNode(const torch::Tensor& x, const torch::Tensor& shared,
                             const torch::Tensor& weight, const torch::Tensor& bias,
                             const StepSlopes& steps = {});

// The slope of a weight [out, in] or, of a block layer, [G, in + X, out] for the slopes [N, ...] of
// its product with x and `shared`; all contiguous. And of the bias, [N, out] -> [out].
torch::Tensor PlainWeightSlope(const torch::Tensor& x, const torch::Tensor& shared,
                               const torch::Tensor& slope, const torch::Tensor& weight);
torch::Tensor SumOfRows(const torch::Tensor& slope);

}  // namespace tetrion
