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
// piece is drawn also where it collides; nothing else tells that the game is over.
struct Packed2Layout {
  static constexpr int kRows = 72, kColumns = 80;
  static constexpr int kRowBytes = kColumns / 4;
  static constexpr std::int64_t kBytes = kRows * kRowBytes;
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

// The picture of an empty field: its frame.
struct Background {
  std::uint8_t byte[Packed2Layout::kBytes];
};
TETRION_HOST_DEVICE constexpr Background MakeBackground() {
  using L = Packed2Layout;
  constexpr int kFloor = L::kFieldY + kTetrisRows * L::kCell;
  constexpr int kRight = L::kFieldX + kTetrisColumns * L::kCell;
  Background background = {};
  for (int y = L::kFieldY; y < kFloor + L::kFrame; ++y) {
    for (int x = L::kFieldX - L::kFrame; x < kRight + L::kFrame; ++x) {
      if (y < kFloor && x >= L::kFieldX && x < kRight) continue;
      std::uint8_t& byte = background.byte[y * L::kRowBytes + x / 4];
      byte = static_cast<std::uint8_t>(byte | L::kFrameShade << (2 * (x % 4)));
    }
  }
  return background;
}

// Writes the low `kBytes` bytes of `pixels` at pixel (y, x), x a multiple of 4, into the three rows
// of a cell.
template <int kBytes>
TETRION_HOST_DEVICE inline void PutCells(std::uint8_t* out, int y, int x, std::uint64_t pixels) {
  for (int line = 0; line < Packed2Layout::kCell; ++line) {
    std::uint8_t* to = out + (y + line) * Packed2Layout::kRowBytes + x / 4;
#if defined(__CUDA_ARCH__)
    for (int i = 0; i < kBytes; ++i) to[i] = static_cast<std::uint8_t>(pixels >> (8 * i));
#else
    __builtin_memcpy(to, &pixels, kBytes);
#endif
  }
}

// The first `rows` rows of a piece's box.
TETRION_HOST_DEVICE inline void PutPiece(std::uint8_t* out, int y, int x, std::uint64_t box,
                                         int rows, unsigned shade) {
  for (int i = 0; i < rows; ++i) {
    const auto cells = static_cast<unsigned>(box >> (16 * i) & 15);
    PutCells<3>(out, y + i * Packed2Layout::kCell, x, CellPixels(cells) * shade);
  }
}

}  // namespace packed2

// Draws one record into 1440 bytes. The record must come from the rules or from Sanitized.
TETRION_HOST_DEVICE inline void DrawPacked2(const TetrisRecord& record, std::uint8_t* out) {
  using L = Packed2Layout;
  static constexpr packed2::Background kBackground = packed2::MakeBackground();
  // Pixels 38 and 39, the right side of the frame, are stored with the field's.
  constexpr std::uint64_t kRightFrame = std::uint64_t{5 * L::kFrameShade} << 60;
  __builtin_memcpy(out, kBackground.byte, sizeof(kBackground.byte));
  for (int r = 0; r < kTetrisRows; ++r) {
    const std::uint64_t locked = packed2::CellPixels(FieldRow(record, r)) * L::kLockedShade;
    packed2::PutCells<8>(out, L::kFieldY + r * L::kCell, L::kFieldX, locked | kRightFrame);
  }
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t box = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  for (int i = 0; i < 4 && piece.y + i < kTetrisRows; ++i) {
    const int r = piece.y + i;
    const auto cells = static_cast<unsigned>(box >> (16 * i + kTetrisFieldShift) & 0x3FF);
    const std::uint64_t pixels = packed2::CellPixels(FieldRow(record, r)) * L::kLockedShade |
                                 packed2::CellPixels(cells) * L::kPieceShade | kRightFrame;
    packed2::PutCells<8>(out, L::kFieldY + r * L::kCell, L::kFieldX, pixels);
  }
  if (HolderId(record) != kTetrisNoPiece) {
    packed2::PutPiece(out, L::kHolderY, L::kHolderX,
                      PieceRows(HolderId(record), HolderRotation(record)), 4,
                      HasSwapped(record) ? L::kSwappedShade : L::kPieceShade);
  }
  for (int slot = 0; slot < QueueSize(record); ++slot) {
    packed2::PutPiece(out, L::kQueueY + slot % L::kSlotsDown * L::kSlotY,
                      L::kQueueX + slot / L::kSlotsDown * L::kSlotX,
                      PieceRows(QueueSlot(record, slot), 0), 2, L::kPieceShade);
  }
}

// Draws `n` records lying `record_bytes` apart, each beginning with a compact record: compact or
// colour. Any bytes. `out` is [n, 1440] u8.
void ExpandPacked2(const std::byte* records, std::int64_t record_bytes, std::int64_t n,
                   std::uint8_t* out);

}  // namespace tetrion
