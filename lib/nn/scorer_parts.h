#pragma once

#include <cstdint>

// Small loops that the networks scorer and columns have in common.

namespace tetrion {

inline constexpr int kScorerValueTimes = 2;  // units of the value's network for one of the other

// x [n, n] -> y, its transpose.
inline void TransposeSquare(const float* x, std::int64_t n, float* y) {
  for (std::int64_t r = 0; r < n; ++r) {
    for (std::int64_t c = 0; c < n; ++c) y[c * n + r] = x[r * n + c];
  }
}

// grad [count] *= slope.
inline void MultiplyBy(const float* slope, std::int64_t count, float* grad) {
  for (std::int64_t i = 0; i < count; ++i) grad[i] *= slope[i];
}

}  // namespace tetrion
