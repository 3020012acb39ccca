#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include "lib/policy/policy.h"

namespace tetrion {

// Whether `blob` may replace parameters of `bytes` bytes: it has their size and all its numbers are
// finite.
inline LoadResult JudgeWeights(std::span<const std::byte> blob, std::size_t bytes) {
  if (blob.size() != bytes) return LoadResult::kWrongSize;
  for (std::size_t at = 0; at < blob.size(); at += sizeof(float)) {
    float value;
    std::memcpy(&value, blob.data() + at, sizeof value);
    if (!std::isfinite(value)) return LoadResult::kNotFinite;
  }
  return LoadResult::kLoaded;
}

}  // namespace tetrion
