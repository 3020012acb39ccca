#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/tetris/tetris_rules.h"
#include "lib/envs/views/views.h"

namespace tetrion {

// View `planes` with a bit for a float: element i is bit i % 32 of word i / 32. CPU and device make
// the view from it.
inline constexpr int kPlanesWords = (PlanesLayout::kQueue + 7 * kTetrisMaxQueue + 31) / 32;

// Sets `bits`, at most 32 of them, from element `first` on.
template <typename Words>
TETRION_HOST_DEVICE inline void SetElements(Words& words, int first, std::uint32_t bits) {
  const std::uint64_t shifted = std::uint64_t{bits} << (first % 32);
  words[first / 32] |= static_cast<std::uint32_t>(shifted);
  if ((shifted >> 32) != 0) words[first / 32 + 1] |= static_cast<std::uint32_t>(shifted >> 32);
}

// Writes `words` [kPlanesWords], what has |= for its elements, of a record of any bytes.
template <typename Words>
TETRION_HOST_DEVICE inline void MakePlanesBits(const TetrisRecord& any_record, int queue_size,
                                               Words& words) {
  const TetrisRecord record = Sanitized(any_record);
  for (int word = 0; word < kPlanesWords; ++word) words[word] = 0U;
  for (int r = 0; r < kTetrisRows; ++r) {
    SetElements(words, PlanesLayout::kField + r * kTetrisColumns, FieldRow(record, r));
  }
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t rows = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  for (int i = 0; i < 4 && piece.y + i < kTetrisRows; ++i) {
    const auto cells = static_cast<std::uint32_t>(rows >> (16 * i + kTetrisFieldShift)) & 0x3FFU;
    SetElements(words, PlanesLayout::kActive + (piece.y + i) * kTetrisColumns, cells);
  }
  SetElements(words, PlanesLayout::kActiveId, 1U << piece.id);
  SetElements(words, PlanesLayout::kRotation, 1U << piece.rotation);
  SetElements(words, PlanesLayout::kHolder, 1U << HolderId(record));
  SetElements(words, PlanesLayout::kSwapped, HasSwapped(record) ? 1U : 0U);
  for (int slot = 0; slot < queue_size && slot < QueueSize(record); ++slot) {
    SetElements(words, PlanesLayout::kQueue + 7 * slot, 1U << QueueSlot(record, slot));
  }
}

}  // namespace tetrion
