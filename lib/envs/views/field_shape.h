#pragma once

#include <cstdint>

#include "lib/envs/tetris/tetris_rules.h"

namespace tetrion {

// What hand-made evaluations of a Tetris field count beside heights and holes: Dellacherie's and
// those that Thiery and Scherrer added (Improvements on Learning Tetris with Cross-Entropy, ICGA
// Journal 32, 2009). Walls and floor count as full; what is above the field has no part in it. The
// whole field is seen, its top row too.
struct FieldShape {
  // Neighbours in a row of which one is full and one empty, summed over the rows played on.
  int row_transitions;
  // Neighbours in a column of which one is full and one empty.
  int column_transitions;
  // A well is a run of empty cells, one above the other, with full cells on both sides of each:
  // 1 + 2 + ... + its depth, summed over wells.
  int cumulative_wells;
  // Full cells above a hole in its column, summed over holes: empty cells under a full one.
  int hole_depth;
  int rows_with_holes;
};

// Pure; `field` comes from the rules or from Sanitized. Four rows are counted at once.
FieldShape ShapeOf(const TetrisRecord& field);

}  // namespace tetrion
