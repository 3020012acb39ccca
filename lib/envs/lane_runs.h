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
  while (!lanes.empty()) {
    const int first = lanes.front();
    std::size_t count = std::min(most, lanes.size());
    if (!AreNeighbours(lanes.first(count), first)) {
      const std::size_t limit = count;
      count = 1;
      while (count < limit && lanes[count] == first + static_cast<int>(count)) ++count;
    }
    run(first, count);
    lanes = lanes.subspan(count);
  }
}

}  // namespace tetrion
