#pragma once

#include <cstdint>
#include <functional>

#include "lib/nn/torch/torch_pch.h"

namespace tetrion {

// Draws one-hot samples [..., C] for log-probabilities [..., C]; f32 on the CPU, no gradient.
using OneHotSampler = std::function<torch::Tensor(const torch::Tensor& log_probs)>;

// Samples that are a pure function of (seed, update) and of the order of the calls, so that an
// update repeats. A sampler serves one update.
OneHotSampler MakeUpdateSampler(std::uint64_t seed, std::uint64_t update);

}  // namespace tetrion
