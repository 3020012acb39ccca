#pragma once

#include "lib/nn/dreamer/step_slopes.h"
#include "lib/nn/dreamer/update_kernels.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Steps of the differentiation whose both passes are one or two kernels of a device. Tensors are
// f32; `kernels` outlives the backward pass.

// x [..., W], scale [W] -> silu(rms_norm(x)). `steps` that gather are left the scale's slope.
torch::Tensor NormSiluOnDevice(const torch::Tensor& x, const torch::Tensor& scale,
                               UpdateKernels& kernels, const StepSlopes& steps = {});
// As GruStep of lib/nn/dreamer/primitives.h.
torch::Tensor GruStepOnDevice(const torch::Tensor& gates, const torch::Tensor& deter,
                              std::int64_t blocks, UpdateKernels& kernels);
// log_probs [..., C] -> one-hot [..., C], without gradient.
torch::Tensor DrawOneHotsOnDevice(const torch::Tensor& log_probs, const UpdateDraw& draw,
                                  UpdateKernels& kernels);

}  // namespace tetrion
