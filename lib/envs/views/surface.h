#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "lib/envs/tetris/tetris_rules.h"
#include "lib/envs/views/views.h"

// What the views of afterstates and of drops count of a field: heights of its columns and what
// follows from them and from the count of cells.

namespace tetrion {

// Columns padded to a register of bytes: field column c is at kSurfacePad + c, the others stay 0,
// and a box that reaches over a wall with empty columns still lies inside.
inline constexpr int kSurfaceColumns = 16;
inline constexpr int kSurfacePad = 2;

struct alignas(16) Heights {
  std::uint8_t column[kSurfaceColumns];
};

// A field as the features need it.
struct Surface {
  Heights heights;
  int cells;  // locked cells in the rows that features see
};

// The first row that features see: the top row that is played on counts as empty, unless pieces
// appear above it.
inline int FirstRowSeen(const TetrisRecord& field) {
  return SpawnsAbove(field) ? TopRow(field) : TopRow(field) + 1;
}

// Heights and cells of a field.
inline Surface Measure(const TetrisRecord& field) {
  Surface surface = {};
  unsigned seen = 0;
  for (int r = FirstRowSeen(field); r < kTetrisRows; ++r) {
    const unsigned cells = FieldRow(field, r);
    surface.cells += std::popcount(cells);
    for (unsigned fresh = cells & ~seen; fresh != 0; fresh &= fresh - 1) {
      surface.heights.column[kSurfacePad + std::countr_zero(fresh)] =
          static_cast<std::uint8_t>(kTetrisRows - r);
    }
    seen |= cells;
  }
  return surface;
}

// The 13 features, scaled, of a surface.
inline void WriteFeatures(const Surface& surface, float* out) {
  const std::uint8_t* h = surface.heights.column + kSurfacePad;
  int sum = 0, bumpiness = 0;
  std::uint8_t highest = 0;
  for (int c = 0; c < kSurfaceColumns; ++c) sum += surface.heights.column[c];
  for (int c = 0; c < kSurfaceColumns; ++c) highest = std::max(highest, surface.heights.column[c]);
  for (int c = 0; c < kTetrisColumns - 1; ++c) bumpiness += std::abs(h[c] - h[c + 1]);
  for (int c = 0; c < kTetrisColumns; ++c) {
    out[c] = static_cast<float>(h[c]) * AfterstatesLayout::kHeightScale;
  }
  out[10] = static_cast<float>(highest) * AfterstatesLayout::kHeightScale;
  out[11] = static_cast<float>(sum - surface.cells) * AfterstatesLayout::kHolesScale;
  out[12] = static_cast<float>(bumpiness) * AfterstatesLayout::kBumpinessScale;
}

}  // namespace tetrion
