#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/envs/picture.h"
#include "lib/envs/tetris/colour_record.h"

// What tetris-gymnasium 0.3.1 shows of a game: its observation arrays, gymnasium's flattening of
// them, and its picture. Made from `colour` records (environments whose view is `flat` have them).
// Pure, no allocation, any thread; records may be any bytes, the output is then meaningless, but
// stays inside its memory.

namespace tetrion {

// `dict`: the four observation arrays back to back in one u8 buffer of 880 + 16 q bytes, each
// row-major, in the order of their names. Cells are 0 free, 1 bedrock, piece id + 2. q is the
// number of pieces in the preview, 0..7. Rows that are not played on are bedrock: below them stands
// what the package shows of a board of so many rows.
struct DictLayout {
  static constexpr int kRows = 24, kColumns = 18;  // of board and mask: the field and its bedrock
  static constexpr int kActiveMask = 0;            // [24, 18] 1 over the active piece's box, else 0
  static constexpr int kBoard = 432;   // [24, 18] with the active piece unless it collides
  static constexpr int kHolder = 864;  // [4, 4] the held piece; all ones when empty
  static constexpr int kQueue = 880;   // [4, 4q] side by side, the next piece first
  static constexpr std::int64_t Bytes(int queue_size) { return kQueue + 16 * queue_size; }
};

// `flat`: f32[880 + 16 q], the same numbers in the same order: gymnasium's FlattenObservation.
struct FlatLayout {
  static constexpr std::int64_t Floats(int queue_size) { return DictLayout::Bytes(queue_size); }
};

// `records` is [n, 168] u8 (lib/envs/tetris/colour_record.h), any alignment; `out` is [n, Bytes] u8
// (dict) or [n, Floats] f32 (flat, an ObsSpec::expand). `queue_size` is the view's: slots that a
// record does not have are zero.
void ExpandDict(const std::byte* records, std::int64_t n, int queue_size, std::uint8_t* out);
void ExpandFlat(const std::byte* records, std::int64_t n, int queue_size, float* out);

// The package's render_mode="rgb_array", pixel for pixel: the board (18 cells wide), the queue at
// its top right, the holder at its bottom right, the rest of the right side grey, which is as wide
// as the holder where there is no queue. A cell is `scale` x `scale` pixels (the package's
// render_upscale, there 10), `scale` at least 1.
constexpr int RgbSideCells(int queue_size) {
  return 4 * std::max(queue_size, 1);
}
constexpr RgbSize TetrisRgbSize(int queue_size, int scale) {
  return {DictLayout::kRows * scale, (DictLayout::kColumns + RgbSideCells(queue_size)) * scale};
}
// `out` holds TetrisRgbSize(queue_size, scale).Bytes().
void RenderRgb(const ColourRecord& record, int queue_size, int scale, std::uint8_t* out);

// A colour record for drawing where only the compact one is known: its locked cells are
// kUnknownColour.
ColourRecord UncolouredRecord(const TetrisRecord& record);

}  // namespace tetrion
