#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/views/views.h"

namespace tetrion {

// Whether bit 0-9 of a field row is set, as a plane shows it.
TETRION_HOST_DEVICE inline bool HasCell(unsigned cells, int column) {
  return (cells >> column & 1U) != 0;
}

// The cells of field row `r` that the active piece covers.
TETRION_HOST_DEVICE inline unsigned ActiveCells(const TetrisPiece& piece, int r) {
  if (r < piece.y || r >= piece.y + 4) return 0;
  const std::uint64_t rows = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  return static_cast<unsigned>(rows >> (16 * (r - piece.y) + kTetrisFieldShift)) & 0x3FFU;
}

// Element `at` of `planes` (PlanesLayout): what a thread of a device writes. The record must come
// from the rules or from Sanitized.
TETRION_HOST_DEVICE inline bool PlaneAt(const TetrisRecord& record, int at) {
  using L = PlanesLayout;
  const TetrisPiece piece = UnpackActive(record.active);
  if (at < L::kActive) return HasCell(FieldRow(record, at / kTetrisColumns), at % kTetrisColumns);
  if (at < L::kActiveId) {
    const int cell = at - L::kActive;
    return HasCell(ActiveCells(piece, cell / kTetrisColumns), cell % kTetrisColumns);
  }
  if (at < L::kRotation) return piece.id == at - L::kActiveId;
  if (at < L::kHolder) return piece.rotation == at - L::kRotation;
  if (at < L::kSwapped) return HolderId(record) == at - L::kHolder;
  if (at < L::kQueue) return HasSwapped(record);
  const int slot = (at - L::kQueue) / kTetrisPieces;
  return slot < QueueSize(record) && QueueSlot(record, slot) == (at - L::kQueue) % kTetrisPieces;
}

}  // namespace tetrion
