#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/views/packed2_pixels.h"

namespace tetrion {
namespace packed2 {

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
    PutCells<3>(out, y + i * Packed2Layout::kCell, x, BoxPixels(box, i, shade));
  }
}

}  // namespace packed2

// Draws one record into 1440 bytes. The record must come from the rules or from Sanitized.
TETRION_HOST_DEVICE inline void DrawPacked2(const TetrisRecord& record, std::uint8_t* out) {
  using L = Packed2Layout;
  static constexpr packed2::Background kBackground = packed2::MakeBackground();
  __builtin_memcpy(out, kBackground.byte, sizeof(kBackground.byte));
  for (int r = 0; r < kTetrisRows; ++r) {
    packed2::PutCells<8>(out, L::kFieldY + r * L::kCell, L::kFieldX,
                         packed2::LockedPixels(record, r));
  }
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t box = packed2::ActiveBox(piece);
  for (int i = 0; i < 4 && piece.y + i < kTetrisRows; ++i) {
    const int r = piece.y + i;
    packed2::PutCells<8>(out, L::kFieldY + r * L::kCell, L::kFieldX,
                         packed2::LockedPixels(record, r) | packed2::ActivePixels(box, i));
  }
  if (HolderId(record) != kTetrisNoPiece) {
    packed2::PutPiece(out, L::kHolderY, L::kHolderX,
                      PieceRows(HolderId(record), HolderRotation(record)), 4,
                      packed2::HolderShade(record));
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

// As ObsSpec::expand wants it, of pictures: `records` is [n, 1440] u8, `out` is [n, 72, 80] f32,
// shade / 3. `queue_size` is ignored.
void ExpandPacked2Shades(const std::byte* records, std::int64_t n, int queue_size, float* out);

// The same pictures from compact records: `records` is [n, 64] u8, `out` is [n, 72, 80] f32.
void ExpandPixels(const std::byte* records, std::int64_t n, int queue_size, float* out);

}  // namespace tetrion
