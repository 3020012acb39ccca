#pragma once

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// The returns of lib/rl/dreamer/lambda_return.h as operations of the tensor library, which read
// nothing on the host: for updates on a device.

// reward [H, N] of the states arrived at, cont and value [H+1, N] -> returns [H, N].
torch::Tensor ImaginedReturnsOf(const torch::Tensor& reward, const torch::Tensor& cont,
                                const torch::Tensor& value, double lambda);
// cont [H+1, N] -> weights [H, N].
torch::Tensor ImaginedWeightsOf(const torch::Tensor& cont);
// reward, not_last, alive and boot [T, B] -> returns [T-1, B].
torch::Tensor ReplayedReturnsOf(const torch::Tensor& reward, const torch::Tensor& not_last,
                                const torch::Tensor& alive, const torch::Tensor& boot,
                                double discount, double lambda);

}  // namespace tetrion
