#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lib/core/host_device.h"

namespace tetrion {

inline constexpr int kTetrisColumns = 10;
inline constexpr int kTetrisRows = 20;       // of a record's field
inline constexpr int kTetrisFewestRows = 5;  // that a game can be played on
inline constexpr int kTetrisPieces = 7;      // I O T S Z J L are 0..6
inline constexpr int kTetrisMaxQueue = 7;
inline constexpr int kTetrisNoPiece = 7;  // id of an empty holder

// The `compact` record: the whole state of a game except the colours of locked cells and the source
// of the pieces to come. It is the rules' working state too (lib/envs/tetris/tetris_rules.h), so
// writing a record is a copy of 64 bytes.
//
//   offset bits  field
//    0     16x20 row[0..19], top row first. Bit b of a row word is array column b+1 of the 24x18
//                array: bits 0-2 and 13-15 bedrock, always 1; bit c+3 = field column c, 1 where
//                locked. A game on fewer rows is played on the lowest; those above stay empty.
//   40     16x4  row[20..23], the floor: 0xFFFE. A full row is 0xFFFF, so the floor is never full;
//                no piece reaches bit 0.
//   48     16    active: bits 0-2 id, 3-4 rotation (times action 3 since the spawn), 5-8 box x
//                (array column of the box's left edge, 2..12), 9-13 box y (row of its top edge,
//                the top row..18), 14-15 0
//   50     8     holder: bits 0-2 id, 7 when empty; 3-4 rotation; 5 pieces appear above the
//                field; 6-7 0
//   51     8     flags: bit 0 swapped already; bits 1-3 queue size (0..7); 4-7 the top row: rows
//                of the field that are not played on (0..15)
//   52     32    queue: slot i in bits 3i..3i+2, slot 0 is the next piece; unused bits 0
//   56     32    lines cleared in the episode
//   60     32    pieces locked in the episode: cells on the field = 4*pieces - 10*lines
struct TetrisRecord {
  std::uint16_t row[kTetrisRows + 4];
  std::uint16_t active;
  std::uint8_t holder;
  std::uint8_t flags;
  std::uint32_t queue;
  std::uint32_t lines;
  std::uint32_t pieces;
};
static_assert(sizeof(TetrisRecord) == 64 && alignof(TetrisRecord) == 4);
static_assert(std::is_trivially_copyable_v<TetrisRecord>);
static_assert(offsetof(TetrisRecord, row) == 0 && offsetof(TetrisRecord, active) == 48);
static_assert(offsetof(TetrisRecord, holder) == 50 && offsetof(TetrisRecord, flags) == 51);
static_assert(offsetof(TetrisRecord, queue) == 52 && offsetof(TetrisRecord, lines) == 56);
static_assert(offsetof(TetrisRecord, pieces) == 60);

inline constexpr std::uint16_t kTetrisEmptyRow = 0xE007;
inline constexpr std::uint16_t kTetrisFullRow = 0xFFFF;
inline constexpr std::uint16_t kTetrisFloorRow = 0xFFFE;
inline constexpr int kTetrisFieldShift = 3;  // bit of field column 0 in a row word
// What a turn, a column and a row add to TetrisRecord::active; kActiveTurns: bits of its rotation.
inline constexpr int kActiveTurn = 1 << 3;
inline constexpr int kActiveTurns = 3 << 3;
inline constexpr int kActiveColumn = 1 << 5;
inline constexpr int kActiveRow = 1 << 9;
inline constexpr std::uint8_t kTetrisSwapped = 1;
inline constexpr std::uint8_t kTetrisSpawnsAbove = 1 << 5;  // of the holder's byte

// The falling piece: a box of four rows whose top left corner is array cell (y, x).
struct TetrisPiece {
  int id;
  int rotation;
  int x;
  int y;
};

// What the rules tell of locked cells, where no view shows colours.
struct NoColours {
  TETRION_HOST_DEVICE void Clear() {}
  TETRION_HOST_DEVICE void Lock(const TetrisPiece& /*where*/, int /*first*/, int /*last*/) {}
  TETRION_HOST_DEVICE void ClearRow(int /*row*/) {}
};

TETRION_HOST_DEVICE inline std::uint16_t PackActive(const TetrisPiece& piece) {
  return static_cast<std::uint16_t>(piece.id | piece.rotation * kActiveTurn |
                                    piece.x * kActiveColumn | piece.y * kActiveRow);
}

TETRION_HOST_DEVICE inline TetrisPiece UnpackActive(std::uint16_t active) {
  return {active & 7, active >> 3 & 3, active >> 5 & 15, active >> 9 & 31};
}

TETRION_HOST_DEVICE inline std::uint8_t PackHolder(int id, int rotation) {
  return static_cast<std::uint8_t>(id | rotation << 3);
}

TETRION_HOST_DEVICE inline int HolderId(const TetrisRecord& record) {
  return record.holder & 7;
}

TETRION_HOST_DEVICE inline int HolderRotation(const TetrisRecord& record) {
  return record.holder >> 3 & 3;
}

// Whether pieces appear above the field, and not in its highest rows.
TETRION_HOST_DEVICE inline bool SpawnsAbove(const TetrisRecord& record) {
  return (record.holder & kTetrisSpawnsAbove) != 0;
}

TETRION_HOST_DEVICE inline bool HasSwapped(const TetrisRecord& record) {
  return (record.flags & kTetrisSwapped) != 0;
}

TETRION_HOST_DEVICE inline int QueueSize(const TetrisRecord& record) {
  return record.flags >> 1 & 7;
}

// The highest row that is played on, where pieces appear unless they do above it.
TETRION_HOST_DEVICE inline int TopRow(const TetrisRecord& record) {
  return record.flags >> 4;
}

TETRION_HOST_DEVICE inline int QueueSlot(const TetrisRecord& record, int slot) {
  return static_cast<int>(record.queue >> (3 * slot) & 7);
}

// Occupancy of a field row, bit c for column c.
TETRION_HOST_DEVICE inline unsigned FieldRow(const TetrisRecord& record, int row) {
  return static_cast<unsigned>(record.row[row]) >> kTetrisFieldShift & 0x3FFU;
}

// Makes the pieces of any 64 bytes ones that rules and expanders can read without leaving their
// arrays; the rows stay as they are. Leaves pieces written by the rules as they are.
TETRION_HOST_DEVICE inline void SanitizePieces(TetrisRecord& record) {
  const int top = TopRow(record);
  TetrisPiece piece = UnpackActive(record.active);
  if (piece.id >= kTetrisPieces) piece.id = 0;
  piece.x = piece.x < 2 ? 2 : piece.x > 12 ? 12 : piece.x;
  piece.y = piece.y < top ? top : piece.y > 18 ? 18 : piece.y;
  record.active = PackActive(piece);
  record.holder &= kTetrisSpawnsAbove | 31;
  record.queue &= (1U << (3 * QueueSize(record))) - 1;
  constexpr std::uint32_t kLowBits = 01111111;  // of the slots
  const std::uint32_t none = record.queue & record.queue >> 1 & record.queue >> 2 & kLowBits;
  record.queue &= ~(7 * none);
}

// Makes any 64 bytes a record that rules and expanders can read without leaving their arrays: rings
// and files are not trusted. Leaves a record written by the rules as it is.
TETRION_HOST_DEVICE inline TetrisRecord Sanitized(TetrisRecord record) {
  const int top = TopRow(record);
  for (int r = 0; r < kTetrisRows; ++r) {
    record.row[r] = r < top ? kTetrisEmptyRow : record.row[r] | kTetrisEmptyRow;
  }
  for (int r = kTetrisRows; r < kTetrisRows + 4; ++r) record.row[r] = kTetrisFloorRow;
  SanitizePieces(record);
  return record;
}

}  // namespace tetrion
