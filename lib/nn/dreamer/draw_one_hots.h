#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"

namespace tetrion {

// How an update of DreamerV3 draws, on CPU and device alike: a pure function of the seed, the count
// of updates before it, and the order of its draws.

inline constexpr std::uint32_t kRowsOfADraw = 4;  // rows that a block of Philox has words for

// The words of rows 4 `block`.. of the update's draws.
TETRION_HOST_DEVICE inline PhiloxBlock UpdateWords(std::uint64_t seed, std::int64_t updates,
                                                   std::uint32_t block) {
  // The highest bits keep the draws apart from those of tokens (00) and of initial weights (10).
  const std::uint64_t stream = std::uint64_t{3} << 62 | static_cast<std::uint64_t>(updates);
  return PhiloxDraw(seed, stream, block, PhiloxPurpose::kLatents);
}

// The first class whose cumulative probability exceeds the word's share of the unit interval; the
// last one where none does, be it by rounding or since a number is not finite.
template <typename Probs>
TETRION_HOST_DEVICE inline std::uint32_t DrawClass(const Probs& probs, std::uint32_t classes,
                                                   std::uint32_t word) {
  const auto unit = static_cast<float>(UnitDraw(word));
  float sum = 0.0F;
  for (std::uint32_t c = 0; c + 1 < classes; ++c) {
    sum += probs[c];
    if (unit < sum) return c;
  }
  return classes - 1;
}

}  // namespace tetrion
