#pragma once

#include <cstdint>

#include "lib/core/philox.h"

namespace tetrion::cuda::sim {

// Numbers drawn one after the other: the n-th depends on seed and n alone.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  // Uniform in [0, bound).
  std::uint32_t Below(std::uint32_t bound) {
    const std::uint64_t at = drawn_++;
    if (at % 4 == 0) block_ = PhiloxDraw(seed_, at / 4, 0, PhiloxPurpose::kSampler);
    return BoundedDraw(block_.word[at % 4], bound);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  PhiloxBlock block_ = {};
};

}  // namespace tetrion::cuda::sim
