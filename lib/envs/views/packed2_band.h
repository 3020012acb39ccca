#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/views/packed2_pixels.h"

namespace tetrion {

// A `packed2` picture by words of 16 pixels, three rows at a time: what a thread of a device draws.
// The five words of a picture's row:
//
//   word     0          1          2          3             4
//   pixels   0-15       16-31      32-47      48-63         64-79
//   shows    frame,     field      field,     held piece,   queue 4-6
//            field                 frame      queue 0-3
inline constexpr int kPacked2RowWords = Packed2Layout::kRowBytes / 4;
inline constexpr int kPacked2Words = Packed2Layout::kRows * kPacked2RowWords;
static_assert(Packed2Layout::kBytes == 4 * kPacked2Words);

namespace packed2 {

static_assert(Packed2Layout::kFieldX == 8 && Packed2Layout::kHolderX == 48 &&
              Packed2Layout::kQueueX == 48 && Packed2Layout::kSlotX == 16);

// Where the frame ends below.
inline constexpr int kFloorY = Packed2Layout::kFieldY + kTetrisRows * Packed2Layout::kCell;
inline constexpr int kFrameEndY = kFloorY + Packed2Layout::kFrame;

// The 32 pixels from kFieldX on of a picture row y in [kFieldY, kFrameEndY): field and frame.
TETRION_HOST_DEVICE inline std::uint64_t FieldPixels(const TetrisRecord& record, int y) {
  using L = Packed2Layout;
  constexpr std::uint32_t kOnes = 0x55555555U * L::kFrameShade;  // every pixel the frame's
  if (y >= kFloorY) return std::uint64_t{kOnes} << 32 | kOnes;
  const int r = (y - L::kFieldY) / L::kCell;
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t locked = LockedPixels(record, r);
  if (r < piece.y || r >= piece.y + 4) return locked;
  return locked | ActivePixels(ActiveBox(piece), r - piece.y);
}

// Words 0 to 2 of such a row.
TETRION_HOST_DEVICE inline std::uint32_t FieldWord(std::uint64_t pixels, int word) {
  using L = Packed2Layout;
  constexpr std::uint32_t kLeftFrame =
      0x55555555U * L::kFrameShade << (2 * (L::kFieldX - L::kFrame)) & 0xFFFFU;
  if (word == 0) return static_cast<std::uint32_t>(pixels << 16) | kLeftFrame;
  return static_cast<std::uint32_t>(word == 1 ? pixels >> 16 : pixels >> 48);
}

// Row y of the pieces of one column of the queue, from slot `first` on.
TETRION_HOST_DEVICE inline std::uint32_t QueueWord(const TetrisRecord& record, int y, int first) {
  using L = Packed2Layout;
  if (y < L::kQueueY) return 0;
  const int slot = first + (y - L::kQueueY) / L::kSlotY;
  const int i = (y - L::kQueueY) % L::kSlotY / L::kCell;
  if (i > 1 || slot >= first + L::kSlotsDown || slot >= QueueSize(record)) return 0;
  return static_cast<std::uint32_t>(
      BoxPixels(PieceRows(QueueSlot(record, slot), 0), i, L::kPieceShade));
}

// Row y of the held piece.
TETRION_HOST_DEVICE inline std::uint32_t HolderWord(const TetrisRecord& record, int y) {
  using L = Packed2Layout;
  const int i = (y - L::kHolderY) / L::kCell;
  if (y < L::kHolderY || i > 3 || HolderId(record) == kTetrisNoPiece) return 0;
  return static_cast<std::uint32_t>(
      BoxPixels(PieceRows(HolderId(record), HolderRotation(record)), i, HolderShade(record)));
}

}  // namespace packed2

// Rows of a picture that lie in the same cells: they are equal but for where the frame ends.
struct Packed2Band {
  static constexpr int kRows = Packed2Layout::kCell, kWords = kRows * kPacked2RowWords;
  static constexpr int kCount = Packed2Layout::kRows / kRows;
};
static_assert(Packed2Layout::kRows % Packed2Band::kRows == 0 &&
              Packed2Layout::kFieldY % Packed2Band::kRows == 0 &&
              Packed2Layout::kHolderY % Packed2Band::kRows == 0 &&
              Packed2Layout::kQueueY % Packed2Band::kRows == 0 &&
              Packed2Layout::kSlotY % Packed2Band::kRows == 0);

// Words kWords * band and on of a picture into out[0, kWords): bits as in DrawPacked2's bytes, the
// first byte lowest. The record must come from the rules or from Sanitized.
template <typename Words>
TETRION_HOST_DEVICE void DrawPacked2Band(const TetrisRecord& record, int band, const Words& out) {
  const int y = band * Packed2Band::kRows;
  const bool has_field = y >= Packed2Layout::kFieldY && y < packed2::kFrameEndY;
  const std::uint64_t pixels = has_field ? packed2::FieldPixels(record, y) : 0;
  const std::uint32_t first_column =
      packed2::HolderWord(record, y) | packed2::QueueWord(record, y, 0);
  const std::uint32_t second_column = packed2::QueueWord(record, y, Packed2Layout::kSlotsDown);
  for (int row = 0; row < Packed2Band::kRows; ++row) {
    const bool shows_field = has_field && y + row < packed2::kFrameEndY;
    const int at = row * kPacked2RowWords;
    for (int word = 0; word < 3; ++word) {
      out[at + word] = shows_field ? packed2::FieldWord(pixels, word) : 0U;
    }
    out[at + 3] = first_column;
    out[at + 4] = second_column;
  }
}

}  // namespace tetrion
