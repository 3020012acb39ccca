#pragma once

#include <cstdint>
#include <functional>

#include "lib/nn/dreamer/update_kernels.h"
#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Draws one-hot samples [..., C] for log-probabilities [..., C]; f32, no gradient.
using OneHotSampler = std::function<torch::Tensor(const torch::Tensor& log_probs)>;

// Samples that are a pure function of (seed, updates) and of the order of the calls, so that an
// update repeats. `updates`: how many there were. A sampler serves one update, on the CPU.
OneHotSampler MakeUpdateSampler(std::uint64_t seed, std::int64_t updates);
// The same on a device: `updates`, one i64 there, is read when the device comes to a draw.
OneHotSampler MakeDeviceSampler(std::uint64_t seed, const torch::Tensor& updates,
                                UpdateKernels& kernels);

}  // namespace tetrion
