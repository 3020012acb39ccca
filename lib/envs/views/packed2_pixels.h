#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/tetris/tetris_rules.h"

namespace tetrion {

// `packed2`: a picture of Tetris for networks that eat pixels, 72 rows of 80 pixels of 2 bits, 1440
// bytes: row-major, 20 bytes a row, 4 pixels a byte, the leftmost in bits 0-1. 0 white, 3 black.
// Our own drawing, from the compact record alone:
//
//            x 6   8                38  40      48         60  64         76
//     y 6      ┌┐  field, 3x3        ┌┐         held piece
//              ││  pixels a cell     ││    18
//              ││  locked 2          ││    24   queue 0        queue 4
//              ││  active 3          ││    33   queue 1        queue 5
//              ││                    ││    42   queue 2        queue 6
//     y 66     └┴────────────────────┴┘    51   queue 3
//     y 68         frame 1
//
// Held and queued pieces have shade 3, the held one shade 1 while it cannot be taken. The active
// piece is drawn also where it collides; nothing else tells that the game is over. Rows that are
// not played on have the frame's shade.
struct Packed2Layout {
  static constexpr int kRows = 72, kColumns = 80;
  static constexpr int kRowBytes = kColumns / 4;
  static constexpr std::int64_t kBytes = kRows * kRowBytes, kPixels = kRows * kColumns;
  static constexpr int kCell = 3;                 // pixels, both ways
  static constexpr int kFieldX = 8, kFieldY = 6;  // pixel of the field's top left corner
  static constexpr int kFrame = 2;                // thickness in pixels: left, right, below
  static constexpr int kHolderX = 48, kHolderY = 6;
  static constexpr int kQueueX = 48, kQueueY = 24;  // of slot 0
  static constexpr int kSlotsDown = 4;              // then the next column
  static constexpr int kSlotX = 16, kSlotY = 9;     // from slot to slot
  static constexpr unsigned kFrameShade = 1, kLockedShade = 2, kPieceShade = 3, kSwappedShade = 1;
};
static_assert(Packed2Layout::kBytes == 1440);

// What a network sees of a pixel, whose two bits are the lowest: shade / 3, for these four exactly.
TETRION_HOST_DEVICE inline float Packed2Shade(unsigned pixel) {
  return static_cast<float>(pixel & 3U) * (1.0F / 3);
}

namespace packed2 {

// Bit c of five becomes the three pixels of a cell, shade 1.
struct CellTable {
  std::uint32_t pixels[32];
};
TETRION_HOST_DEVICE constexpr CellTable MakeCellTable() {
  CellTable table = {};
  for (unsigned bits = 0; bits < 32; ++bits) {
    for (int c = 0; c < 5; ++c) table.pixels[bits] |= (bits >> c & 1) * 0x15U << (6 * c);
  }
  return table;
}

// Ten cells as 30 pixels of shade 1; times a shade below 4 they have that.
TETRION_HOST_DEVICE inline std::uint64_t CellPixels(unsigned cells) {
  static constexpr CellTable kTable = MakeCellTable();
  return kTable.pixels[cells & 31] | static_cast<std::uint64_t>(kTable.pixels[cells >> 5 & 31])
                                         << 30;
}

// Pixels 38 and 39, the right side of the frame, are stored with the field's 30.
inline constexpr std::uint64_t kRightFrame = std::uint64_t{5 * Packed2Layout::kFrameShade} << 60;

// The locked cells of field row `r` and the frame, as the 32 pixels from kFieldX on.
TETRION_HOST_DEVICE inline std::uint64_t LockedPixels(const TetrisRecord& record, int r) {
  if (r < TopRow(record)) return CellPixels(0x3FF) * Packed2Layout::kFrameShade | kRightFrame;
  return CellPixels(FieldRow(record, r)) * Packed2Layout::kLockedShade | kRightFrame;
}

// The active piece's box in the field, row i in bits 16i and on.
TETRION_HOST_DEVICE inline std::uint64_t ActiveBox(const TetrisPiece& piece) {
  return PieceRows(piece.id, piece.rotation) << (piece.x - 1);
}

// Row `i` of that box, of the same pixels as the locked cells'.
TETRION_HOST_DEVICE inline std::uint64_t ActivePixels(std::uint64_t box, int i) {
  const auto cells = static_cast<unsigned>(box >> (16 * i + kTetrisFieldShift) & 0x3FF);
  return CellPixels(cells) * Packed2Layout::kPieceShade;
}

// Row `i` of a piece's box beside the field: 12 pixels.
TETRION_HOST_DEVICE inline std::uint64_t BoxPixels(std::uint64_t box, int i, unsigned shade) {
  return CellPixels(static_cast<unsigned>(box >> (16 * i) & 15)) * shade;
}

TETRION_HOST_DEVICE inline unsigned HolderShade(const TetrisRecord& record) {
  return HasSwapped(record) ? Packed2Layout::kSwappedShade : Packed2Layout::kPieceShade;
}

}  // namespace packed2
}  // namespace tetrion
