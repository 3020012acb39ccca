#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/tetris/tetris_record.h"

// The rules of Tetris as tetris-gymnasium 0.3.1 plays them (lib/envs/README.md), once for CPU and
// CUDA: integers only, no allocation, no recursion, no libc. Four board rows and four piece rows
// are tested and merged in one 64-bit operation. Here: actions, tables and tests;
// lib/envs/tetris/tetris_step.h has the transitions.

namespace tetrion {

enum TetrisAction : int {
  kTetrisLeft = 0,
  kTetrisRight = 1,
  kTetrisDown = 2,
  kTetrisClockwise = 3,  // numpy's rot90(k=+1)
  kTetrisCounterclockwise = 4,
  kTetrisHardDrop = 5,
  kTetrisSwap = 6,
  kTetrisNoop = 7,
};
inline constexpr int kTetrisActions = 8;
inline constexpr int kPlacementActions = 4 * kTetrisColumns;  // action = column * 4 + rotations

// What one action brought. The reward is 10 lines^2 + 1 for a locked piece, 0 where the game ends;
// a caller replaces it by kIllegalReward where `illegal`.
struct TetrisOutcome {
  int reward = 0;
  int lines = 0;  // cleared by this action, also when it ended the game
  bool terminated = false;
  bool illegal = false;  // placement: not in the mask
};
inline constexpr float kIllegalReward = -0.1F;

// Side of the piece's square box: I 4, O 2, else 3.
TETRION_HOST_DEVICE constexpr int PieceSize(int id) {
  return id == 0 ? 4 : id == 1 ? 2 : 3;
}

// The spawn position's array column.
TETRION_HOST_DEVICE constexpr int SpawnX(int id) {
  return 9 - PieceSize(id) / 2;
}

namespace tetris_tables {

// Tables are indexed as bits 0-4 of TetrisRecord::active: id | rotation << 3.
TETRION_HOST_DEVICE constexpr int Oriented(int id, int rotation) {
  return id | rotation << 3;
}

// Box rows of the oriented pieces: row i in bits 16i.., box column j in bit j of it.
struct PieceTable {
  std::uint64_t rows[32];
};

TETRION_HOST_DEVICE constexpr PieceTable MakePieceTable() {
  // Rotation 0, four hexadecimal digits a piece: top row first, bit j = box column j.
  constexpr std::uint16_t kBase[kTetrisPieces] = {0x0F00, 0x3300, 0x2700, 0x6300,
                                                  0x3600, 0x1700, 0x4700};
  PieceTable table = {};
  for (int id = 0; id < kTetrisPieces; ++id) {
    const int n = PieceSize(id);
    std::uint64_t rows = 0;
    for (int i = 0; i < 4; ++i)
      rows |= static_cast<std::uint64_t>(kBase[id] >> (12 - 4 * i) & 15) << (16 * i);
    for (int rotation = 0; rotation < 4; ++rotation) {
      table.rows[Oriented(id, rotation)] = rows;
      std::uint64_t turned = 0;
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) turned |= (rows >> (16 * j + n - 1 - i) & 1) << (16 * i + j);
      }
      rows = turned;
    }
  }
  return table;
}

// The same at a place, indexed as bits 0-8 of TetrisRecord::active: row i in bits 16i.., bits of it
// as of a record's row words.
struct CellTable {
  std::uint64_t rows[512];
};

TETRION_HOST_DEVICE constexpr CellTable MakeCellTable() {
  const PieceTable pieces = MakePieceTable();
  CellTable table = {};
  for (int at = 32; at < 512; ++at) table.rows[at] = pieces.rows[at & 31] << ((at >> 5) - 1);
  return table;
}

// Legal placements of the oriented pieces: bit column * 4 + rotations.
struct MaskTable {
  std::uint64_t mask[32];
};

TETRION_HOST_DEVICE constexpr MaskTable MakeMaskTable() {
  const PieceTable pieces = MakePieceTable();
  MaskTable table = {};
  for (int oriented = 0; oriented < 32; ++oriented) {
    const int id = oriented & 7;
    for (int action = 0; action < kPlacementActions; ++action) {
      const std::uint64_t rows = pieces.rows[Oriented(id, ((oriented >> 3) + action) % 4)];
      const int x = action / 4 + 4 - PieceSize(id) / 2;
      constexpr std::uint64_t kWalls = kTetrisEmptyRow * 0x0001000100010001ULL;
      if ((rows << (x - 1) & kWalls) == 0) table.mask[oriented] |= 1ULL << action;
    }
  }
  return table;
}

}  // namespace tetris_tables

// Box rows of a piece at box x = 1; shift left by x - 1 to place them.
TETRION_HOST_DEVICE inline std::uint64_t PieceRows(int id, int rotation) {
  static constexpr tetris_tables::PieceTable kTable = tetris_tables::MakePieceTable();
  return kTable.rows[id | rotation << 3];
}

// Cells of a piece packed as TetrisRecord::active, in the four rows from its box's top edge on.
TETRION_HOST_DEVICE inline std::uint64_t CellRows(std::uint32_t active) {
#if defined(__CUDA_ARCH__)
  return PieceRows(active & 7, active >> 3 & 3) << ((active >> 5 & 15) - 1);
#else
  static constexpr tetris_tables::CellTable kTable = tetris_tables::MakeCellTable();
  return kTable.rows[active & 511];
#endif
}

// Four consecutive row words, the first in bits 0-15.
TETRION_HOST_DEVICE inline std::uint64_t LoadRows(const std::uint16_t* row) {
#if defined(__CUDA_ARCH__)
  return row[0] | static_cast<std::uint64_t>(row[1]) << 16 |
         static_cast<std::uint64_t>(row[2]) << 32 | static_cast<std::uint64_t>(row[3]) << 48;
#else
  std::uint64_t rows;
  __builtin_memcpy(&rows, row, sizeof(rows));
  return rows;
#endif
}

TETRION_HOST_DEVICE inline void StoreRows(std::uint16_t* row, std::uint64_t rows) {
#if defined(__CUDA_ARCH__)
  for (int i = 0; i < 4; ++i) row[i] = static_cast<std::uint16_t>(rows >> (16 * i));
#else
  __builtin_memcpy(row, &rows, sizeof(rows));
#endif
}

// Whether one of four row words is full. The floor never is.
TETRION_HOST_DEVICE inline bool AnyFullRow(std::uint64_t rows) {
  const std::uint64_t free = ~rows;
  return ((free - 0x0001000100010001ULL) & ~free & 0x8000800080008000ULL) != 0;
}

// Whether any cell of the piece lies on bedrock or on a locked cell.
TETRION_HOST_DEVICE inline bool Collides(const TetrisRecord& record, const TetrisPiece& piece) {
  return (LoadRows(record.row + piece.y) & PieceRows(piece.id, piece.rotation) << (piece.x - 1)) !=
         0;
}

// The same of a piece packed as TetrisRecord::active, and of the active one.
TETRION_HOST_DEVICE inline bool Collides(const TetrisRecord& record, std::uint16_t packed) {
  return (LoadRows(record.row + packed / kActiveRow) & CellRows(packed)) != 0;
}
TETRION_HOST_DEVICE inline bool Collides(const TetrisRecord& record) {
  return Collides(record, record.active);
}

// A piece packed as TetrisRecord::active after a move or a rotation, whether it is free there or
// not. Other actions leave it where it is.
TETRION_HOST_DEVICE inline std::uint16_t MovedPacked(std::uint16_t packed, std::uint16_t action) {
  const int column = (action == kTetrisRight) - (action == kTetrisLeft);
  const int turns = (action == kTetrisClockwise) + 3 * (action == kTetrisCounterclockwise);
  const int shift = column * kActiveColumn + (action == kTetrisDown) * kActiveRow;
  const int kept = (packed & ~kActiveTurns) + shift;
  return static_cast<std::uint16_t>(kept | ((packed + turns * kActiveTurn) & kActiveTurns));
}

// Actions a placement game accepts now: those whose dropped piece stays clear of bedrock.
TETRION_HOST_DEVICE inline std::uint64_t PlacementMask(const TetrisRecord& record) {
  static constexpr tetris_tables::MaskTable kTable = tetris_tables::MakeMaskTable();
  return kTable.mask[record.active & 31];
}

}  // namespace tetrion
