#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lib/core/host_device.h"
#include "lib/envs/tetris/tetris_rules.h"

namespace tetrion {

// The `colour` record: the compact record followed by the colours of the locked cells. Kept instead
// of the compact one only where a view shows colours (`flat`); it begins with the compact record,
// so whatever reads that can read these bytes too.
//
//   offset bytes  field
//     0     64    compact
//    64   20x5    colour[row][c / 2], top row first: field column c in bits 0-3 where c is even, in
//                 bits 4-7 where it is odd. 0 free, else the locked piece's id + 2 (2..8). A cell
//                 is non-zero exactly where the compact record's occupancy bit is set.
//   164      4    reserved, 0: a row can be loaded and stored as eight bytes
struct ColourRecord {
  TetrisRecord compact;
  std::uint8_t colour[kTetrisRows][kTetrisColumns / 2];
  std::uint8_t reserved[4];
};
static_assert(sizeof(ColourRecord) == 168 && alignof(ColourRecord) == 4);
static_assert(sizeof(ColourRecord) % 8 == 0);
static_assert(std::is_trivially_copyable_v<ColourRecord>);
static_assert(offsetof(ColourRecord, compact) == 0 && offsetof(ColourRecord, colour) == 64);
static_assert(offsetof(ColourRecord, reserved) == 164);

// Nibble of a locked cell whose piece is not known, as UncolouredRecord writes it; drawn light
// grey.
inline constexpr int kUnknownColour = 9;

// The ten nibbles of a field row, column 0 in bits 0-3; bits 40-63 are 0.
TETRION_HOST_DEVICE inline std::uint64_t ColourRow(const ColourRecord& record, int row) {
  std::uint64_t nibbles = 0;
  for (int i = 0; i < kTetrisColumns / 2; ++i) {
    nibbles |= static_cast<std::uint64_t>(record.colour[row][i]) << (8 * i);
  }
  return nibbles;
}

// Value of a field cell: 0 free, else id + 2.
TETRION_HOST_DEVICE inline int ColourAt(const ColourRecord& record, int row, int column) {
  return record.colour[row][column / 2] >> (4 * (column & 1)) & 15;
}

// What TetrisStep and its kin take to keep the colours of a record beside its occupancy. Does not
// own the record.
class LockedColours {
 public:
  TETRION_HOST_DEVICE explicit LockedColours(ColourRecord& record) : record_(&record) {}

  TETRION_HOST_DEVICE void Clear() {
    for (auto& row : record_->colour) {
      for (auto& cells : row) cells = 0;
    }
    for (auto& byte : record_->reserved) byte = 0;
  }

  // `piece` lies where it is locked, free of bedrock; its box's rows `first`..`last`-1 are in the
  // field and are coloured.
  TETRION_HOST_DEVICE void Lock(const TetrisPiece& piece, int first, int last) {
    const std::uint64_t rows = PieceRows(piece.id, piece.rotation);
    for (int i = first; i < last; ++i) {
      const std::uint64_t bits = rows >> (16 * i) & 15;
      if (bits == 0) continue;
      const std::uint64_t ones = (bits & 1) | (bits & 2) << 3 | (bits & 4) << 6 | (bits & 8) << 9;
      // Box column 0 is array column x, field column x - 4.
      const std::uint64_t nibbles =
          ones * static_cast<unsigned>(piece.id + 2) << (4 * piece.x) >> 16;
      for (int byte = 0; byte < kTetrisColumns / 2; ++byte) {
        record_->colour[piece.y + i][byte] |= static_cast<std::uint8_t>(nibbles >> (8 * byte));
      }
    }
  }

  // Row `cleared` vanishes, those above it move down by one.
  TETRION_HOST_DEVICE void ClearRow(int cleared) {
    for (int row = cleared; row > 0; --row) {
      for (int i = 0; i < kTetrisColumns / 2; ++i) {
        record_->colour[row][i] = record_->colour[row - 1][i];
      }
    }
    for (auto& cells : record_->colour[0]) cells = 0;
  }

 private:
  ColourRecord* record_;
};

// The state that the rules play on, and what keeps its colours, of either kind of record.
TETRION_HOST_DEVICE inline TetrisRecord& CompactOf(TetrisRecord& record) {
  return record;
}
TETRION_HOST_DEVICE inline const TetrisRecord& CompactOf(const TetrisRecord& record) {
  return record;
}
TETRION_HOST_DEVICE inline TetrisRecord& CompactOf(ColourRecord& record) {
  return record.compact;
}
TETRION_HOST_DEVICE inline const TetrisRecord& CompactOf(const ColourRecord& record) {
  return record.compact;
}
TETRION_HOST_DEVICE inline NoColours ColoursOf(TetrisRecord&) {
  return {};
}
TETRION_HOST_DEVICE inline LockedColours ColoursOf(ColourRecord& record) {
  return LockedColours(record);
}

}  // namespace tetrion
