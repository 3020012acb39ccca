#pragma once

#include <cstdint>

namespace tetrion {

// grad [count] *= slope.
inline void MultiplyBy(const float* slope, std::int64_t count, float* grad) {
  for (std::int64_t i = 0; i < count; ++i) grad[i] *= slope[i];
}

}  // namespace tetrion
