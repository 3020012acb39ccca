#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/views/packed2_pixels.h"

namespace tetrion {

// A `packed2` picture 16 pixels at a time: what a thread of a device draws, so that neighbouring
// threads store neighbouring words. The five words of a picture's row:
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

// Words 0 to 2 of picture row y: field and frame.
TETRION_HOST_DEVICE inline std::uint32_t FieldWord(const TetrisRecord& record, int y, int word) {
  using L = Packed2Layout;
  constexpr int kFloor = L::kFieldY + kTetrisRows * L::kCell;
  constexpr std::uint32_t kOnes = 0x55555555U * L::kFrameShade;  // every pixel the frame's
  if (y < L::kFieldY || y >= kFloor + L::kFrame) return 0;
  std::uint64_t pixels = std::uint64_t{kOnes} << 32 | kOnes;  // from kFieldX on
  if (y < kFloor) {
    const int r = (y - L::kFieldY) / L::kCell;
    const TetrisPiece piece = UnpackActive(record.active);
    pixels = LockedPixels(record, r);
    if (r >= piece.y && r < piece.y + 4) pixels |= ActivePixels(ActiveBox(piece), r - piece.y);
  }
  constexpr std::uint32_t kLeftFrame = kOnes << (2 * (L::kFieldX - L::kFrame)) & 0xFFFFU;
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

// Word `word` of kPacked2Words, bits as in DrawPacked2's bytes, the first byte lowest. The record
// must come from the rules or from Sanitized.
TETRION_HOST_DEVICE inline std::uint32_t Packed2Word(const TetrisRecord& record, int word) {
  const int y = word / kPacked2RowWords, column = word % kPacked2RowWords;
  if (column < 3) return packed2::FieldWord(record, y, column);
  if (column == 4) return packed2::QueueWord(record, y, Packed2Layout::kSlotsDown);
  return packed2::HolderWord(record, y) | packed2::QueueWord(record, y, 0);
}

}  // namespace tetrion
