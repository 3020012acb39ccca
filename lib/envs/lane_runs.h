#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tetrion {

// Whether `lanes` are first, first + 1, ... in this order.
inline bool AreNeighbours(std::span<const int> lanes, int first) {
  unsigned off = 0;  // without a way out of the loop, which becomes vectors
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    off |=
        static_cast<unsigned>(lanes[i]) ^ (static_cast<unsigned>(first) + static_cast<unsigned>(i));
  }
  return off == 0;
}

// Calls run(first, count) for each stretch of neighbours in `lanes`, `most` of them at most. Loops
// over a stretch become vectors.
template <typename Run>
void ForEachRun(std::span<const int> lanes, std::size_t most, Run&& run) {
  constexpr std::size_t kLooked = 64;
  while (!lanes.empty()) {
    const int first = lanes.front();
    const std::size_t limit = std::min(most, lanes.size());
    const auto is_next = [&](std::size_t i) { return lanes[i] == first + static_cast<int>(i); };
    std::size_t count = 1;
    // A block at a time, of which a list of lanes that lie apart looks at none.
    for (std::size_t block = 0; count < limit && is_next(count); count += block) {
      block = std::min(kLooked, limit - count);
      const int next = first + static_cast<int>(count);
      if (!AreNeighbours(lanes.subspan(count, block), next)) break;
    }
    while (count < limit && is_next(count)) ++count;
    run(first, count);
    lanes = lanes.subspan(count);
  }
}

}  // namespace tetrion
