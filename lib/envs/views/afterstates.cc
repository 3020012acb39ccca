// The views `afterstates` and `afterstates-dt`, the hot path of placement training. Column heights
// of the present field are found once; a placement that clears nothing and stays off the top row
// only raises up to four of them, and every number of `afterstates` follows from the heights and
// the count of cells. Anything rarer goes the slow way: build the rows and look. What
// `afterstates-dt` has besides is counted on the rows, four at a time.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/field_shape.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

// Columns padded to a register of bytes: field column c is at kPad + c, the others stay 0, and a
// box that reaches over a wall with empty columns still lies inside.
constexpr int kLanes = 16;
constexpr int kPad = 2;

struct alignas(16) Heights {
  std::uint8_t column[kLanes];
};

// A field as the features need it.
struct Surface {
  Heights heights;
  int cells;  // locked cells below the top row
};

// An oriented piece's outline in its box: per box column the last row with a cell (kAbsent where
// there is none: it never stops a drop), and how far the column's top is above the box's top,
// counted from a floor 20 rows below it (0 where there is none: it raises no column).
constexpr int kAbsent = -64;
struct Outline {
  int bottom[4];
  int rise[4];
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
        outline.highest = std::min(outline.highest, i);
      }
      outline.lowest = std::max(outline.lowest, outline.bottom[j]);
    }
  }
  return table;
}

constexpr OutlineTable kOutlines = MakeOutlines();

// Heights and cells of a field whose top row that is played on counts as empty.
Surface Measure(const TetrisRecord& field) {
  Surface surface = {};
  unsigned seen = 0;
  for (int r = TopRow(field) + 1; r < kTetrisRows; ++r) {
    const unsigned cells = FieldRow(field, r);
    surface.cells += std::popcount(cells);
    for (unsigned fresh = cells & ~seen; fresh != 0; fresh &= fresh - 1) {
      surface.heights.column[kPad + std::countr_zero(fresh)] =
          static_cast<std::uint8_t>(kTetrisRows - r);
    }
    seen |= cells;
  }
  return surface;
}

// The 13 features, scaled, of a surface.
void WriteFeatures(const Surface& surface, float* out) {
  const std::uint8_t* h = surface.heights.column + kPad;
  int sum = 0, bumpiness = 0;
  std::uint8_t highest = 0;
  for (int c = 0; c < kLanes; ++c) sum += surface.heights.column[c];
  for (int c = 0; c < kLanes; ++c) highest = std::max(highest, surface.heights.column[c]);
  for (int c = 0; c < kTetrisColumns - 1; ++c) bumpiness += std::abs(h[c] - h[c + 1]);
  for (int c = 0; c < kTetrisColumns; ++c) {
    out[c] = static_cast<float>(h[c]) * AfterstatesLayout::kHeightScale;
  }
  out[10] = static_cast<float>(highest) * AfterstatesLayout::kHeightScale;
  out[11] = static_cast<float>(sum - surface.cells) * AfterstatesLayout::kHolesScale;
  out[12] = static_cast<float>(bumpiness) * AfterstatesLayout::kBumpinessScale;
}

// The game a view row is made for: the record, what its field looks like and what comes next.
struct Present {
  TetrisRecord record;
  Surface surface;
  bool top_row_used;        // the fast way needs an empty top row
  int active_y;             // where the drop really starts
  std::uint64_t next_rows;  // the next piece at its spawn position
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
  const std::uint8_t* h = heights.column + kPad;
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

// A placement near the top, or one that fills rows. `piece.y` is the top row.
template <typename Layout>
void WriteSlowRow(const Present& present, TetrisPiece piece, float* out) {
  TetrisRecord field = present.record;
  TetrisPiece start = piece;
  start.y = present.active_y;
  const std::uint64_t cells = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  while ((LoadRows(field.row + piece.y + 1) & cells) == 0) ++piece.y;
  if (Collides(field, piece)) {
    std::memset(out, 0, Layout::kRowFloats * sizeof(float));
    out[15] = 1.0F;
    return;
  }
  const bool starts_blocked = Collides(field, start);
  const std::uint64_t merged = LoadRows(field.row + piece.y) | cells;
  StoreRows(field.row + piece.y, merged);
  const int lowest = piece.y + kOutlines.of[piece.id | piece.rotation << 3].lowest;
  const int lines = ClearRows(field, piece.y);
  const Surface surface = Measure(field);
  WriteFeatures(surface, out);
  out[13] = static_cast<float>(lines) * AfterstatesLayout::kLinesScale;
  out[14] = static_cast<float>(kTetrisRows - 1 - lowest) * AfterstatesLayout::kRowScale;
  out[15] = starts_blocked || NextCollides(field, present.next_rows) ? 1.0F : 0.0F;
  WriteLanding<Layout>(field, surface.heights, piece, lines * CellsInFullRows(merged, cells), out);
}

// The row of one legal placement.
template <typename Layout>
void WriteRow(const Present& present, int id, int rotation, int x, float* out) {
  const Outline& outline = kOutlines.of[id | rotation << 3];
  Surface surface = present.surface;
  std::uint8_t* under = surface.heights.column + kPad + x - 4;  // box column 0
  int y = kTetrisRows;
  for (int j = 0; j < 4; ++j) y = std::min(y, kTetrisRows - 1 - under[j] - outline.bottom[j]);
  const std::uint64_t cells = PieceRows(id, rotation) << (x - 1);
  const int top = TopRow(present.record);
  if (present.top_row_used || y <= top || y < present.active_y ||
      AnyFullRow(LoadRows(present.record.row + y) | cells)) {
    WriteSlowRow<Layout>(present, {id, rotation, x, top}, out);
    return;
  }
  for (int j = 0; j < 4; ++j) {
    under[j] = static_cast<std::uint8_t>(std::max<int>(under[j], outline.rise[j] - y));
  }
  surface.cells += 4;
  WriteFeatures(surface, out);
  out[13] = 0.0F;
  out[14] = static_cast<float>(kTetrisRows - 1 - y - outline.lowest) * AfterstatesLayout::kRowScale;
  const std::uint64_t at_top = y - top >= 4 ? 0 : cells << (16 * (y - top));
  out[15] = ((LoadRows(present.record.row + top) | at_top) & present.next_rows) != 0 ? 1.0F : 0.0F;
  if constexpr (Layout::kRowFloats > AfterstatesLayout::kRowFloats) {
    TetrisRecord field = present.record;
    StoreRows(field.row + y, LoadRows(field.row + y) | cells);
    WriteLanding<Layout>(field, surface.heights, {id, rotation, x, y}, 0, out);
  }
}

template <typename Layout>
void ExpandState(const TetrisRecord& record, int queue_size, float* out) {
  std::memset(out, 0, static_cast<std::size_t>(Layout::Floats(queue_size)) * sizeof(float));
  const TetrisPiece piece = UnpackActive(record.active);
  const int next = QueueSlot(record, 0);
  const Present present = {record, Measure(record), FieldRow(record, TopRow(record)) != 0, piece.y,
                           PieceRows(next, 0) << (SpawnX(next) - 1)};
  for (std::uint64_t left = PlacementMask(record); left != 0; left &= left - 1) {
    const int action = std::countr_zero(left);
    WriteRow<Layout>(present, piece.id, (piece.rotation + action) & 3,
                     action / 4 + 4 - PieceSize(piece.id) / 2, out + action * Layout::kRowFloats);
  }
  WriteFeatures(present.surface, out + Layout::kPresent);
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

}  // namespace tetrion
