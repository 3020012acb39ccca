// The views `afterstates`, `afterstates-dt` and `afterstates-boards`, the hot path of placement
// training. Column heights of the present field are found once; a placement that clears nothing and
// stays off the top row only raises up to four of them, and every number of `afterstates` follows
// from the heights and the count of cells. Anything rarer goes the slow way: build the rows and
// look. What `afterstates-dt` has besides is counted on the rows, four at a time;
// `afterstates-boards` adds the piece's cells to the present columns.

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/field_shape.h"
#include "lib/envs/views/outlines.h"
#include "lib/envs/views/surface.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

// The cells of each column, a bit a row, the floor's the lowest; padded as Heights.
struct Columns {
  std::uint32_t cells[kSurfaceColumns];
};

Columns ColumnsOf(const TetrisRecord& field) {
  Columns columns = {};
  for (int r = TopRow(field); r < kTetrisRows; ++r) {
    for (unsigned left = FieldRow(field, r); left != 0; left &= left - 1) {
      columns.cells[kSurfacePad + std::countr_zero(left)] |= 1U << (kTetrisRows - 1 - r);
    }
  }
  return columns;
}

void WriteColumns(const Columns& columns, float* out) {
  for (int c = 0; c < kTetrisColumns; ++c)
    out[c] = static_cast<float>(columns.cells[kSurfacePad + c]);
}

// Layouts differ in whether a row begins with features or with cells.
template <typename Layout>
constexpr bool kShowsCells = std::is_same_v<Layout, AfterstatesBoardsLayout>;

// The game a view row is made for: the record, what its field looks like and what comes next.
struct Present {
  TetrisRecord record;
  Surface surface;
  Columns columns;          // where the view shows cells
  bool unseen_row_used;     // the fast way needs it empty
  int active_y;             // where the drop really starts
  std::uint64_t next_rows;  // the next piece at its spawn position; 0 where it cannot be known
};

// Whether the next piece finds no room at the top of `field`.
bool NextCollides(const TetrisRecord& field, std::uint64_t next_rows) {
  return (LoadRows(field.row + TopRow(field)) & next_rows) != 0;
}

// The columns of `afterstates-dt` beside those of `afterstates`, at its row's kShape or, of a
// present field, behind its features: what `field` looks like.
void WriteShape(const TetrisRecord& field, float* out) {
  using L = AfterstatesDtLayout;
  const FieldShape shape = ShapeOf(field);
  out[0] = static_cast<float>(shape.row_transitions) * L::kRowTransitionsScale;
  out[1] = static_cast<float>(shape.column_transitions) * L::kColumnTransitionsScale;
  out[2] = static_cast<float>(shape.cumulative_wells) * L::kWellsScale;
  out[3] = static_cast<float>(shape.hole_depth) * L::kDepthScale;
  out[4] = static_cast<float>(shape.rows_with_holes) * L::kHoleRowsScale;
}

// How many of the differences -2..2 there are between neighbouring columns.
int PatternsOf(const Heights& heights) {
  const std::uint8_t* h = heights.column + kSurfacePad;
  unsigned found = 0;
  for (int c = 0; c < kTetrisColumns - 1; ++c) {
    const auto difference = static_cast<unsigned>(h[c] - h[c + 1] + 2);
    found |= difference < 5 ? 1U << difference : 0U;
  }
  return std::popcount(found);
}

// The row of a piece that lies at `piece` in `field`, from which full rows have been cleared:
// `eroded` are lines times the piece's cells in them.
template <typename Layout>
void WriteLanding(const TetrisRecord& field, const Heights& heights, const TetrisPiece& piece,
                  int eroded, float* out) {
  if constexpr (Layout::kRowFloats > AfterstatesLayout::kRowFloats) {
    const Outline& outline = kOutlines.of[piece.id | piece.rotation << 3];
    const int twice_middle = 2 * (kTetrisRows - 1 - piece.y) - outline.lowest - outline.highest;
    WriteShape(field, out + Layout::kShape);
    out[21] = static_cast<float>(eroded) * Layout::kErodedScale;
    out[22] = static_cast<float>(twice_middle) * (Layout::kLandingScale / 2);
    out[23] = static_cast<float>(PatternsOf(heights)) * Layout::kPatternsScale;
  }
}

// Cells of the four rows `cells` that lie in full ones of `merged`.
int CellsInFullRows(std::uint64_t merged, std::uint64_t cells) {
  int in_full = 0;
  for (int i = 0; i < 4; ++i) {
    const bool full = (merged >> (16 * i) & 0xFFFF) == kTetrisFullRow;
    in_full += full ? std::popcount(cells >> (16 * i) & 0xFFFF) : 0;
  }
  return in_full;
}

// The row of a placement that leaves nothing to look at.
template <typename Layout>
void WriteNothing(bool ends, float* out) {
  std::memset(out, 0, Layout::kRowFloats * sizeof(float));
  out[Layout::kEnds] = ends ? 1.0F : 0.0F;
}

// Whether the game ends when `piece`, whose shape is `cells`, is dropped from where it is.
bool EndsFrom(const Present& present, TetrisPiece piece, std::uint64_t cells) {
  TetrisRecord field = present.record;
  if (Collides(field, piece)) return true;
  while ((LoadRows(field.row + piece.y + 1) & cells) == 0) ++piece.y;
  StoreRows(field.row + piece.y, LoadRows(field.row + piece.y) | cells);
  ClearRows(field, piece.y);
  return NextCollides(field, present.next_rows);
}

// A placement near the top, or one that fills rows. `piece.y` is the top row.
template <typename Layout>
void WriteSlowRow(const Present& present, TetrisPiece piece, float* out) {
  TetrisRecord field = present.record;
  const std::uint64_t cells = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  // One that has fallen already, as after an action that did nothing, may land elsewhere.
  bool ends = false, has_fallen = false;
  int lines = 0;
  if (SpawnsAbove(field)) {
    const LandingFromAbove landing = LandFromAbove(field, piece);
    if (!landing.inside) return WriteNothing<Layout>(/*ends=*/true, out);
    piece.y = landing.y;
    lines = landing.lines;
  } else {
    TetrisPiece start = piece;
    start.y = present.active_y;
    has_fallen = start.y > piece.y;
    ends = has_fallen ? EndsFrom(present, start, cells) : Collides(field, start);
    while ((LoadRows(field.row + piece.y + 1) & cells) == 0) ++piece.y;
    if (Collides(field, piece)) return WriteNothing<Layout>(ends || !has_fallen, out);
    StoreRows(field.row + piece.y, LoadRows(field.row + piece.y) | cells);
    lines = ClearRows(field, piece.y);
  }
  out[Layout::kLines] = static_cast<float>(lines) * AfterstatesLayout::kLinesScale;
  ends = ends || (!has_fallen && NextCollides(field, present.next_rows));
  out[Layout::kEnds] = ends ? 1.0F : 0.0F;
  if constexpr (kShowsCells<Layout>) {
    WriteColumns(ColumnsOf(field), out);
  } else {
    const std::uint64_t merged = LoadRowsFromAbove(present.record, piece.y) | cells;
    const int lowest = piece.y + kOutlines.of[piece.id | piece.rotation << 3].lowest;
    const Surface surface = Measure(field);
    WriteFeatures(surface, out);
    out[14] = static_cast<float>(kTetrisRows - 1 - lowest) * AfterstatesLayout::kRowScale;
    WriteLanding<Layout>(field, surface.heights, piece, lines * CellsInFullRows(merged, cells),
                         out);
  }
}

// Whether a box that comes to lie at `y` has nothing to do with the rows where games end.
bool IsBelowTheTop(const Present& present, int y) {
  return !present.unseen_row_used && y >= FirstRowSeen(present.record) && y >= present.active_y;
}

// The row of one legal placement. Returns the row of its box where the fast way wrote it, else -1.
template <typename Layout>
int WriteRow(const Present& present, int id, int rotation, int x, float* out) {
  const Outline& outline = kOutlines.of[id | rotation << 3];
  const int at = kSurfacePad + x - 4;  // box column 0
  const std::uint8_t* under = present.surface.heights.column + at;
  int y = kTetrisRows;
  for (int j = 0; j < 4; ++j) y = std::min(y, kTetrisRows - 1 - under[j] - outline.bottom[j]);
  const std::uint64_t cells = PieceRows(id, rotation) << (x - 1);
  const int top = TopRow(present.record);
  if (!IsBelowTheTop(present, y) || AnyFullRow(LoadRows(present.record.row + y) | cells)) {
    WriteSlowRow<Layout>(present, {id, rotation, x, top}, out);
    return -1;
  }
  out[Layout::kLines] = 0.0F;
  const std::uint64_t at_top = y - top >= 4 ? 0 : cells << (16 * (y - top));
  const bool ends = ((LoadRows(present.record.row + top) | at_top) & present.next_rows) != 0;
  out[Layout::kEnds] = ends ? 1.0F : 0.0F;
  if constexpr (kShowsCells<Layout>) {
    Columns columns = present.columns;
    std::uint32_t* fill = columns.cells + kSurfacePad + x - 4;
    for (int j = 0; j < 4; ++j) fill[j] |= outline.cells[j] << (kTetrisRows - y) >> 4;
    WriteColumns(columns, out);
  } else {
    const Surface surface = {Raised(present.surface.heights, id | rotation << 3, at, y),
                             present.surface.cells + 4};
    WriteFeatures(surface, out);
    out[14] =
        static_cast<float>(kTetrisRows - 1 - y - outline.lowest) * AfterstatesLayout::kRowScale;
    if constexpr (Layout::kRowFloats > AfterstatesLayout::kRowFloats) {
      TetrisRecord field = present.record;
      StoreRows(field.row + y, LoadRows(field.row + y) | cells);
      WriteLanding<Layout>(field, surface.heights, {id, rotation, x, y}, 0, out);
    }
  }
  return y;
}

// The rows of all legal placements, `out` [A, F], rotation after rotation: a placement that leaves
// what one of an earlier rotation leaves is a copy of it.
template <typename Layout>
void WriteRows(const Present& present, const TetrisPiece& piece, float* out) {
  constexpr std::uint64_t kOfATurn = 0x1111111111ULL;
  const std::uint64_t legal = PlacementMask(present.record);
  int box_row[kPlacementActions];  // as WriteRow returned it
  for (int turns = 0; turns < 4; ++turns) {
    const int rotation = (piece.rotation + turns) & 3;
    const auto& twins = kTwins.of[piece.id | rotation << 3];
    int earlier = 0;  // turns of the first rotation of the same shape
    while (!twins[(piece.rotation + earlier) & 3].same) ++earlier;
    const Twin& twin = twins[(piece.rotation + earlier) & 3];
    for (std::uint64_t left = legal & kOfATurn << turns; left != 0; left &= left - 1) {
      const int action = std::countr_zero(left), column = action / 4;
      float* row = out + action * Layout::kRowFloats;
      const int same = (column + twin.left) * 4 + earlier;
      // The other box may lie beside the columns that actions name.
      const bool is_there = earlier < turns && same >= 0 && (legal >> same & 1) != 0;
      if (is_there && box_row[same] >= 0 && IsBelowTheTop(present, box_row[same] - twin.up)) {
        std::memcpy(row, out + same * Layout::kRowFloats, Layout::kRowFloats * sizeof(float));
        continue;
      }
      box_row[action] =
          WriteRow<Layout>(present, piece.id, rotation, column + 4 - PieceSize(piece.id) / 2, row);
    }
  }
}

template <typename Layout>
void ExpandState(const TetrisRecord& record, int queue_size, float* out) {
  std::memset(out, 0, static_cast<std::size_t>(Layout::Floats(queue_size)) * sizeof(float));
  const TetrisPiece piece = UnpackActive(record.active);
  const int next = QueueSlot(record, 0);
  const bool next_in_field = !SpawnsAbove(record) && QueueSize(record) > 0;
  const Present present = {record,
                           Measure(record),
                           kShowsCells<Layout> ? ColumnsOf(record) : Columns{},
                           !SpawnsAbove(record) && FieldRow(record, TopRow(record)) != 0,
                           piece.y,
                           next_in_field ? PieceRows(next, 0) << (SpawnX(next) - 1) : 0};
  WriteRows<Layout>(present, piece, out);
  if constexpr (kShowsCells<Layout>) {
    WriteColumns(present.columns, out + Layout::kPresent);
  } else {
    WriteFeatures(present.surface, out + Layout::kPresent);
  }
  if constexpr (Layout::kRowFloats > AfterstatesLayout::kRowFloats) {
    WriteShape(record, out + Layout::kPresent + 13);
  }
  out[Layout::kActiveId + piece.id] = 1.0F;
  for (int slot = 0; slot < queue_size && slot < QueueSize(record); ++slot) {
    out[Layout::kQueue + 7 * slot + QueueSlot(record, slot)] = 1.0F;
  }
}

template <typename Layout>
void Expand(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * static_cast<std::int64_t>(sizeof(record)), sizeof(record));
    ExpandState<Layout>(Sanitized(record), queue_size, out + i * Layout::Floats(queue_size));
  }
}

}  // namespace

void ExpandAfterstates(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  Expand<AfterstatesLayout>(records, n, queue_size, out);
}

void ExpandAfterstatesDt(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  Expand<AfterstatesDtLayout>(records, n, queue_size, out);
}

void ExpandAfterstatesBoards(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  Expand<AfterstatesBoardsLayout>(records, n, queue_size, out);
}

}  // namespace tetrion
