#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/envs/tetris/tetris_rules.h"

// What the shapes of pieces mean for where they come to lie, found when the program is compiled.
// `oriented` is id | rotation << 3.

namespace tetrion {

// An oriented piece's outline in its box: per box column the last row with a cell (kAbsent where
// there is none: it never stops a drop), and how far the column's top is above the box's top,
// counted from a floor 20 rows below it (0 where there is none: it raises no column), and the
// column's cells, bit 3 - i for row i.
inline constexpr int kAbsent = -64;
struct Outline {
  int bottom[4];
  int rise[4];
  std::uint32_t cells[4];
  int highest;  // first row with a cell
  int lowest;   // greatest bottom
};

struct OutlineTable {
  Outline of[32];
};

constexpr OutlineTable MakeOutlines() {
  const tetris_tables::PieceTable pieces = tetris_tables::MakePieceTable();
  OutlineTable table = {};
  for (int oriented = 0; oriented < 32; ++oriented) {
    Outline& outline = table.of[oriented];
    outline.highest = 3;
    for (int j = 0; j < 4; ++j) {
      outline.bottom[j] = kAbsent;
      for (int i = 0; i < 4; ++i) {
        if ((pieces.rows[oriented] >> (16 * i + j) & 1) == 0) continue;
        if (outline.rise[j] == 0) outline.rise[j] = kTetrisRows - i;
        outline.bottom[j] = i;
        outline.cells[j] |= 8U >> i;
        outline.highest = std::min(outline.highest, i);
      }
      outline.lowest = std::max(outline.lowest, outline.bottom[j]);
    }
  }
  return table;
}

inline constexpr OutlineTable kOutlines = MakeOutlines();

// Where an oriented piece has the shape of another rotation of its id, as I, S, Z have every second
// time and O every time: the cells of its box at (x, y) are those of the other box at
// (x + left, y + up).
struct Twin {
  bool same;
  int left, up;
};

struct TwinTable {
  Twin of[32][4];  // [oriented][rotation of the other]
};

constexpr std::uint64_t MovedToCorner(std::uint64_t rows, int* column, int* row) {
  constexpr std::uint64_t kFirstColumn = 0x0001000100010001ULL;
  for (*column = 0; (rows & kFirstColumn) == 0; ++*column) rows >>= 1;
  for (*row = 0; (rows & 0xF) == 0; ++*row) rows >>= 16;
  return rows;
}

constexpr TwinTable MakeTwins() {
  const tetris_tables::PieceTable pieces = tetris_tables::MakePieceTable();
  TwinTable table = {};
  for (int id = 0; id < kTetrisPieces; ++id) {
    for (int rotation = 0; rotation < 16; ++rotation) {
      const int oriented = tetris_tables::Oriented(id, rotation / 4);
      int column = 0, row = 0, other_column = 0, other_row = 0;
      const std::uint64_t shape = MovedToCorner(pieces.rows[oriented], &column, &row);
      const std::uint64_t other = MovedToCorner(
          pieces.rows[tetris_tables::Oriented(id, rotation % 4)], &other_column, &other_row);
      table.of[oriented][rotation % 4] = {shape == other, column - other_column, row - other_row};
    }
  }
  return table;
}

inline constexpr TwinTable kTwins = MakeTwins();

}  // namespace tetrion
