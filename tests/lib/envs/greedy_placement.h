#pragma once

#include <bit>
#include <cstddef>
#include <vector>

#include "lib/envs/views/views.h"

namespace tetrion::testing {

// The legal placement with few holes and a low, even surface: clears rows for hundreds of pieces.
inline int GreedyPlacement(const TetrisRecord& record) {
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(1)));
  ExpandAfterstates(reinterpret_cast<const std::byte*>(&record), 1, 1, view.data());
  const std::uint64_t mask = PlacementMask(record);
  int best = std::countr_zero(mask);
  float best_score = 1e9F;
  for (int action = 0; action < kPlacementActions; ++action) {
    const float* row =
        &view[static_cast<std::size_t>(action) * std::size_t{AfterstatesLayout::kRowFloats}];
    const float score = 8 * row[11] + row[10] + row[12] + 100 * row[15];
    if ((mask >> action & 1) == 0 || score >= best_score) continue;
    best = action;
    best_score = score;
  }
  return best;
}

}  // namespace tetrion::testing
