#include "lib/envs/views/field_shape.h"

#include <bit>

namespace tetrion {
namespace {

// Four rows a word, the highest in the lowest 16 bits, as LoadRows makes them.
constexpr int kWords = kTetrisRows / 4;
constexpr std::uint64_t kEveryRow = 0x0001000100010001ULL;
constexpr std::uint64_t kField = kEveryRow * (0x3FFU << kTetrisFieldShift);
// Where a cell and its right neighbour differ: from the left wall to the tenth column.
constexpr std::uint64_t kPairs = kEveryRow * (0x7FFU << (kTetrisFieldShift - 1));

struct FieldWords {
  std::uint64_t word[kWords];
};

// `first` is the first word that is not empty, here and below.
int HoleDepth(const FieldWords& full, const FieldWords& holes, int first) {
  int depth = 0;
  for (int r = 4 * first + 1; r < kTetrisRows; ++r) {
    const std::uint64_t of_row = holes.word[r / 4] >> (16 * (r % 4)) & 0xFFFF;
    if (of_row == 0) continue;
    const std::uint64_t columns = of_row * kEveryRow;
    for (int i = first; i < r / 4; ++i) depth += std::popcount(full.word[i] & columns);
    const std::uint64_t rows_above = (std::uint64_t{1} << (16 * (r % 4))) - 1;
    depth += std::popcount(full.word[r / 4] & columns & rows_above);
  }
  return depth;
}

// Every pass finds the wells' cells that have one more of the well above them: a well of depth d is
// counted d, then d - 1 times.
int CumulativeWells(const FieldWords& wells, int first) {
  FieldWords ends = wells;
  int sum = 0;
  for (bool any = true; any;) {
    any = false;
    std::uint64_t above = 0;  // the word before, as it was
    for (int i = first; i < kWords; ++i) {
      const std::uint64_t word = ends.word[i];
      sum += std::popcount(word);
      ends.word[i] = wells.word[i] & (word << 16 | above >> 48);
      above = word;
      any = any || ends.word[i] != 0;
    }
  }
  return sum;
}

int NonZeroRows(std::uint64_t word) {
  // A row's bits are the field's: adding 0x7FFF carries into the row's top bit unless it is 0.
  return std::popcount((word + kEveryRow * 0x7FFF) & kEveryRow * 0x8000);
}

}  // namespace

FieldShape ShapeOf(const TetrisRecord& field) {
  // Rows above those that are played on are empty: two transitions each, and one over every full
  // cell of the top row.
  const int top = TopRow(field);
  FieldShape shape = {.row_transitions = -2 * top};
  if (top > 0) shape.column_transitions = -std::popcount(FieldRow(field, top));
  // Nor is there anything but walls above the stack.
  constexpr std::uint64_t kEmptyRows = kTetrisEmptyRow * kEveryRow;
  int first = 0;
  while (first + 1 < kWords && LoadRows(field.row + 4 * first) == kEmptyRows) {
    shape.row_transitions += 2 * 4;
    shape.column_transitions += std::popcount(FieldRow(field, 4 * first + 4));
    ++first;
  }
  FieldWords full, holes, wells;
  std::uint64_t covered = 0;  // columns with a full cell in a row above, in every row
  std::uint64_t any_hole = 0, any_well = 0;
  for (int i = first; i < kWords; ++i) {
    const std::uint64_t rows = LoadRows(field.row + 4 * i);
    const std::uint64_t below = LoadRows(field.row + 4 * i + 1);
    shape.row_transitions += std::popcount((rows ^ rows >> 1) & kPairs);
    shape.column_transitions += std::popcount((rows ^ below) & kField);
    full.word[i] = rows & kField;
    std::uint64_t seen = full.word[i] | full.word[i] << 16;
    seen |= seen << 32 | covered;
    covered = (seen >> 48) * kEveryRow;
    holes.word[i] = seen & ~rows;
    wells.word[i] = ~rows & rows << 1 & rows >> 1 & kField;
    shape.rows_with_holes += NonZeroRows(holes.word[i]);
    any_hole |= holes.word[i];
    any_well |= wells.word[i];
  }
  if (any_hole != 0) shape.hole_depth = HoleDepth(full, holes, first);
  if (any_well != 0) shape.cumulative_wells = CumulativeWells(wells, first);
  return shape;
}

}  // namespace tetrion
