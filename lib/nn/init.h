#pragma once

#include <cstdint>
#include <span>

namespace tetrion {

// Of the policy's head: small, so that logits start near 0 and the first policy nearly uniform.
inline constexpr double kPolicyHeadGain = 0.01;

// Fills `weight` [rows, columns] f32 with an orthogonal matrix times `gain` (Saxe et al., 2014):
// the shorter dimension's vectors are orthonormal. A pure function of (seed, stream, shape);
// `stream` tells parameters of one network apart.
void OrthogonalInit(std::span<float> weight, std::int64_t rows, std::int64_t columns, double gain,
                    std::uint64_t seed, std::uint64_t stream);

}  // namespace tetrion
