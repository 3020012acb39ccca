#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "lib/envs/tetris/tetris_rules.h"
#include "lib/envs/views/outlines.h"
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

// The four rises of an oriented piece's outline among zeros, so that 16 of them can be loaded with
// the rises at any of a field's padded columns.
struct RiseTable {
  std::uint8_t of[32][3 * kSurfaceColumns];
};
constexpr RiseTable MakeRises() {
  RiseTable table = {};
  for (int oriented = 0; oriented < 32; ++oriented) {
    for (int j = 0; j < 4; ++j) {
      table.of[oriented][kSurfaceColumns + j] =
          static_cast<std::uint8_t>(kOutlines.of[oriented].rise[j]);
    }
  }
  return table;
}
inline constexpr RiseTable kRises = MakeRises();

// Heights once an oriented piece lies with its box's first column at padded column `at` and its
// first row at `y`.
inline Heights Raised(const Heights& before, int oriented, int at, int y) {
  Heights after;
  const auto load = [](const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i rise = load(kRises.of[oriented] + kSurfaceColumns - at);
  const __m128i top = _mm_subs_epu8(rise, _mm_set1_epi8(static_cast<char>(y)));
  _mm_store_si128(reinterpret_cast<__m128i*>(after.column), _mm_max_epu8(load(before.column), top));
  return after;
}

// Of the padded columns.
struct SurfaceCounts {
  int sum;        // of all heights
  int highest;    // greatest height
  int bumpiness;  // sum of the differences between neighbouring columns
};
inline SurfaceCounts CountsOf(const Heights& heights) {
  const __m128i h = _mm_load_si128(reinterpret_cast<const __m128i*>(heights.column));
  const auto sum_of = [](__m128i bytes) {
    const __m128i halves = _mm_sad_epu8(bytes, _mm_setzero_si128());
    return _mm_cvtsi128_si32(halves) + _mm_extract_epi16(halves, 4);
  };
  // The smallest of pairs of complements: there is no such instruction for the greatest.
  const __m128i low = _mm_xor_si128(h, _mm_set1_epi8(-1));
  const __m128i smallest = _mm_minpos_epu16(_mm_min_epu8(low, _mm_srli_epi16(low, 8)));
  const __m128i next = _mm_srli_si128(h, 1);
  const __m128i off = _mm_or_si128(_mm_subs_epu8(h, next), _mm_subs_epu8(next, h));
  const __m128i between =  // two columns of the field
      _mm_setr_epi8(0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0);
  return {sum_of(h), 255 - (_mm_cvtsi128_si32(smallest) & 0xFF),
          sum_of(_mm_and_si128(off, between))};
}

// The 13 features, scaled, of a surface.
inline void WriteFeatures(const Surface& surface, float* out) {
  const std::uint8_t* h = surface.heights.column + kSurfacePad;
  const SurfaceCounts counts = CountsOf(surface.heights);
  const __m256i of8 = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(h)));
  _mm256_storeu_ps(
      out, _mm256_mul_ps(_mm256_cvtepi32_ps(of8), _mm256_set1_ps(AfterstatesLayout::kHeightScale)));
  for (int c = 8; c < kTetrisColumns; ++c) {
    out[c] = static_cast<float>(h[c]) * AfterstatesLayout::kHeightScale;
  }
  out[10] = static_cast<float>(counts.highest) * AfterstatesLayout::kHeightScale;
  out[11] = static_cast<float>(counts.sum - surface.cells) * AfterstatesLayout::kHolesScale;
  out[12] = static_cast<float>(counts.bumpiness) * AfterstatesLayout::kBumpinessScale;
}

}  // namespace tetrion
