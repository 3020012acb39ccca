#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/envs/tetris/tetris_rules.h"

// What networks eat, made from records. Pure, no allocation, any thread; records may be any bytes
// (a ring's content is not trusted): the output is then meaningless, but stays inside its memory.

namespace tetrion {

// `planes`: f32[420 + 7 q], all 0 or 1. Cells are row-major from the top left; one-hots have no bit
// set for nothing, except the holder's, whose bit 7 says "empty".
struct PlanesLayout {
  static constexpr int kField = 0;       // [200] locked cells
  static constexpr int kActive = 200;    // [200] cells of the active piece inside the field
  static constexpr int kActiveId = 400;  // [7]
  static constexpr int kRotation = 407;  // [4]
  static constexpr int kHolder = 411;    // [8]
  static constexpr int kSwapped = 419;   // [1]
  static constexpr int kQueue = 420;     // [q][7], next piece first
  static constexpr std::int64_t Floats(int queue_size) { return kQueue + 7 * queue_size; }
};

// `afterstates`: f32[40][16] then f32[20 + 7 q].
//
// Row a of the first part is what placement a would leave (dropped, locked, rows cleared):
//   0-9   column heights / 20          13  lines cleared / 4
//   10    greatest height / 20         14  landing row / 20: rows below the piece's lowest cell
//   11    holes / 20                   15  1 if the placement ends the game
//   12    bumpiness / 50
// A row is zeros where the placement is illegal, and zeros but for column 15 where the piece would
// not fit. As in tetris-gymnasium's FeatureVectorObservation under GroupedActions, columns 0-12 do
// not see the top row that is played on, and the drop is tried from there: a piece that collides
// there but not one row lower shows the field below, and column 15 says that the game ends. Of a
// piece that has fallen before it is placed, as after an action that did nothing, column 15 alone
// tells of a drop from where it is: the row of a legal placement is all zeros where the drop from
// the top is blocked and this one does not end the game. So the active piece, not zeros, says what
// is legal. Where pieces appear above the field, the top row is seen as any other, and a placement
// ends the game that leaves cells above it. Without a preview it is not known whether the next
// piece collides.
//
// Second part: 0-12 the same numbers of the present field, 13-19 active id, then [q][7] the queue.
struct AfterstatesLayout {
  static constexpr int kRowFloats = 16, kLines = 13, kEnds = 15;
  static constexpr int kPresent = kPlacementActions * kRowFloats;  // 640
  static constexpr int kActiveId = kPresent + 13;                  // [7]
  static constexpr int kQueue = kPresent + 20;                     // [q][7], next piece first
  static constexpr std::int64_t Floats(int queue_size) { return kQueue + 7 * queue_size; }
  static constexpr float kHeightScale = 1.0F / 20, kHolesScale = 1.0F / 20;
  static constexpr float kBumpinessScale = 1.0F / 50, kLinesScale = 1.0F / 4, kRowScale = 1.0F / 20;
};

// `afterstates-dt`: f32[40][24] then f32[25 + 7 q]: `afterstates` and what hand-made evaluations
// count besides (lib/envs/views/field_shape.h), of the field after the placement.
//
//   0-15  as in `afterstates`          20  rows with holes / 10
//   16    row transitions / 40         21  eroded piece cells / 4: rows cleared times the piece's
//   17    column transitions / 20          cells in them
//   18    cumulative wells / 20        22  landing height / 20: rows below the piece's middle
//   19    hole depth / 20              23  pattern diversity / 5: how many of -2..2 are differences
//                                          of neighbouring columns' heights
// A row is zeros where that of `afterstates` is, but for column 15.
//
// Second part: 0-12 and 13-17 the numbers of columns 0-12 and 16-20 of the present field, 18-24
// active id, then [q][7] the queue.
struct AfterstatesDtLayout {
  static constexpr int kRowFloats = 24, kLines = 13, kEnds = 15;
  static constexpr int kShape = 16;                                // of a row: columns 16-23
  static constexpr int kPresent = kPlacementActions * kRowFloats;  // 960
  static constexpr int kActiveId = kPresent + 18;                  // [7]
  static constexpr int kQueue = kPresent + 25;                     // [q][7], next piece first
  static constexpr std::int64_t Floats(int queue_size) { return kQueue + 7 * queue_size; }
  static constexpr float kRowTransitionsScale = 1.0F / 40, kColumnTransitionsScale = 1.0F / 20;
  static constexpr float kWellsScale = 1.0F / 20, kDepthScale = 1.0F / 20;
  static constexpr float kHoleRowsScale = 1.0F / 10, kErodedScale = 1.0F / 4;
  static constexpr float kLandingScale = 1.0F / 20, kPatternsScale = 1.0F / 5;
};

// `afterstates-boards`: f32[40][12] then f32[17 + 7 q]: boards as they are, and no more of them.
//
//   0-9   the cells of a column as an integer, bit r for row r from the floor; all rows are seen
//   10    lines cleared / 4
//   11    1 if the placement ends the game
// A row is zeros where the placement is illegal, and zeros but for column 11 where the piece would
// not fit. Lines and end are those of `afterstates`, and as there the row of a legal placement may
// be all zeros once the piece has fallen.
//
// Second part: 0-9 the columns of the present field, 10-16 active id, then [q][7] the queue.
struct AfterstatesBoardsLayout {
  static constexpr int kRowFloats = 12, kLines = 10, kEnds = 11;
  static constexpr int kPresent = kPlacementActions * kRowFloats;  // 480
  static constexpr int kActiveId = kPresent + kTetrisColumns;      // [7]
  static constexpr int kQueue = kActiveId + 7;                     // [q][7], next piece first
  static constexpr std::int64_t Floats(int queue_size) { return kQueue + 7 * queue_size; }
};

// `drops`, of games played by moves: f32[8][25] then f32[45 + 7 q].
//
// Row a is what the field would be if the piece were dropped right after action a and the gravity
// that follows it:
//   0-15  the numbers of a row of `afterstates`
//   16    1 if the action itself locks the piece: the hard drop, or gravity
//   17-24 the action, one-hot
// A row is zeros but for column 15 and those from 16 on where the piece finds no room and the game
// ends, and zeros but for 17-24 where the piece that a swap would bring is not known (the holder is
// empty and there is no preview). Where the piece after next is not known, it finds room.
//
// Second part: 0-12 the numbers of columns 0-12 of the present field, 13-19 active id, 20-23 its
// rotation, 24-34 its box's column (array column - 2), 35 the row of its box / 20, 36-43 the
// holder's id, 43 being "empty", 44 1 if a swap was done for this piece, then [q][7] the queue.
struct DropsLayout {
  static constexpr int kRowFloats = 25, kLocks = 16, kAction = 17;
  static constexpr int kPresent = kTetrisActions * kRowFloats;  // 200
  static constexpr int kActiveId = kPresent + 13;               // [7]
  static constexpr int kRotation = kActiveId + 7;               // [4]
  static constexpr int kColumn = kRotation + 4;                 // [11]
  static constexpr int kRow = kColumn + 11;                     // [1]
  static constexpr int kHolder = kRow + 1;                      // [8]
  static constexpr int kSwapped = kHolder + 8;                  // [1]
  static constexpr int kQueue = kSwapped + 1;                   // [q][7], next piece first
  static constexpr std::int64_t Floats(int queue_size) { return kQueue + 7 * queue_size; }
};

// Expanders as ObsSpec::expand wants them: `records` is [n, 64] u8, `out` is
// [n, floats of the layout] f32. `queue_size` 0..7 is the view's: missing slots are all zero.
void ExpandPlanes(const std::byte* records, std::int64_t n, int queue_size, float* out);
void ExpandAfterstates(const std::byte* records, std::int64_t n, int queue_size, float* out);
void ExpandAfterstatesDt(const std::byte* records, std::int64_t n, int queue_size, float* out);
void ExpandAfterstatesBoards(const std::byte* records, std::int64_t n, int queue_size, float* out);
void ExpandDrops(const std::byte* records, std::int64_t n, int queue_size, float* out);

// As ObsSpec::expand wants it, of planes that a device drew: `records` is [n, floats] u8, `out` is
// [n, floats] f32, the same numbers.
void ExpandPlaneBytes(const std::byte* records, std::int64_t n, int queue_size, float* out);

// The field with the active piece, the next pieces, the held piece and the counters as lines of
// text for a terminal of 256 colours; starts at the cursor and ends with a newline and colours
// reset.
std::string RenderAnsi(const TetrisRecord& record);

}  // namespace tetrion
