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

// Puts `blob` in the place of `parameters` if it may; they are as they were if not.
inline LoadResult TakeWeights(std::span<const std::byte> blob, std::span<float> parameters) {
  const LoadResult result = JudgeWeights(blob, parameters.size_bytes());
  if (result == LoadResult::kLoaded) std::memcpy(parameters.data(), blob.data(), blob.size());
  return result;
}

}  // namespace tetrion
