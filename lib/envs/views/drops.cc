// The view `drops`: every action is tried with the rules' own moves, and the piece is dropped from
// where that leaves it. Heights of the present field are found once; a piece that clears nothing
// and stays off the top row raises up to four of them. The actions of a state end in few different
// places, and each place is looked at once.

#include <algorithm>
#include <cstring>

#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/outlines.h"
#include "lib/envs/views/surface.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

using Row = DropsLayout;
constexpr int kEnds = AfterstatesLayout::kEnds, kLines = AfterstatesLayout::kLines;
constexpr int kLandingRow = 14;

// Stands for the pieces that a swap would draw: only the queue's last slot hears of them.
struct UnseenPieces {
  int Next() const { return 0; }
};

// A piece after an action and gravity, and what follows once it is locked.
struct Outcome {
  TetrisPiece piece;        // where it is dropped from; after Land, where it lies
  std::uint64_t next_rows;  // the next piece at its spawn position; 0 where it is not known
  bool locks = false;       // by the action itself
  bool known = true;
};

// The piece in slot `slot` of the queue where it would appear, as the rows there; 0 where the
// queue does not reach so far.
std::uint64_t RowsOfNext(const TetrisRecord& record, int slot) {
  if (slot >= QueueSize(record)) return 0;
  const int id = QueueSlot(record, slot);
  return PieceRows(id, 0) << (SpawnX(id) - 1);
}

// What `action` and gravity do to the piece, as TetrisStep has it.
Outcome AfterAction(const TetrisRecord& record, int action) {
  const TetrisPiece piece = UnpackActive(record.active);
  Outcome after = {piece, RowsOfNext(record, 0)};
  if (action == kTetrisHardDrop) {
    after.locks = true;
    return after;
  }
  if (action != kTetrisSwap) {
    after.piece = MovePiece(record, action);
  } else if (!HasSwapped(record)) {
    const bool draws = HolderId(record) == kTetrisNoPiece;
    after.known = !draws || QueueSize(record) > 0;
    if (!after.known) return after;
    TetrisRecord swapped = record;
    UnseenPieces unseen;
    after.piece = SwapPiece(swapped, piece, unseen);
    if (draws) after.next_rows = RowsOfNext(record, 1);
  }
  after.piece.y += 1;
  if (Collides(record, after.piece)) {
    after.piece.y -= 1;
    after.locks = true;
  }
  return after;
}

// Whether two pieces of one state come to lie in the same place.
bool SamePlace(const TetrisPiece& a, const TetrisPiece& b) {
  return a.id == b.id && a.rotation == b.rotation && a.x == b.x && a.y == b.y;
}

// Columns 0-15 of the row of a piece that has come to lie at `piece`, where there is room for it.
void WriteLanded(const TetrisRecord& record, const Surface& present, const TetrisPiece& piece,
                 std::uint64_t next_rows, float* out) {
  const std::uint64_t cells = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  const Outline& outline = kOutlines.of[piece.id | piece.rotation << 3];
  const std::uint64_t merged = LoadRows(record.row + piece.y) | cells;
  TetrisRecord field = record;
  StoreRows(field.row + piece.y, merged);
  Surface surface = present;
  if (AnyFullRow(merged)) {
    out[kLines] = static_cast<float>(ClearRows(field, piece.y)) * AfterstatesLayout::kLinesScale;
    surface = Measure(field);
  } else if (piece.y < FirstRowSeen(record)) {
    surface = Measure(field);
  } else {
    const int at = kSurfacePad + piece.x - 4;  // box column 0
    surface = {Raised(present.heights, piece.id | piece.rotation << 3, at, piece.y),
               present.cells + 4};
  }
  WriteFeatures(surface, out);
  out[kLandingRow] =
      static_cast<float>(kTetrisRows - 1 - piece.y - outline.lowest) * AfterstatesLayout::kRowScale;
  const bool ends = (LoadRows(field.row + TopRow(field)) & next_rows) != 0;
  out[kEnds] = ends ? 1.0F : 0.0F;
}

void WriteRows(const TetrisRecord& record, const Surface& present, float* out) {
  Outcome outcomes[kTetrisActions];
  for (int action = 0; action < kTetrisActions; ++action) {
    float* row = out + action * Row::kRowFloats;
    row[Row::kAction + action] = 1.0F;
    Outcome& outcome = outcomes[action];
    outcome = AfterAction(record, action);
    if (!outcome.known) continue;
    row[Row::kLocks] = outcome.locks ? 1.0F : 0.0F;
    TetrisPiece& piece = outcome.piece;
    if (Collides(record, piece)) {
      row[kEnds] = 1.0F;
      continue;
    }
    const std::uint64_t cells = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
    while ((LoadRows(record.row + piece.y + 1) & cells) == 0) ++piece.y;
    const Outcome* same = std::find_if(outcomes, outcomes + action, [&](const Outcome& earlier) {
      return earlier.known && earlier.next_rows == outcome.next_rows &&
             SamePlace(earlier.piece, piece);
    });
    if (same != outcomes + action) {
      std::memcpy(row, out + (same - outcomes) * Row::kRowFloats, Row::kLocks * sizeof(float));
    } else {
      WriteLanded(record, present, piece, outcome.next_rows, row);
    }
  }
}

void ExpandState(const TetrisRecord& record, int queue_size, float* out) {
  std::memset(out, 0, static_cast<std::size_t>(Row::Floats(queue_size)) * sizeof(float));
  const Surface present = Measure(record);
  WriteRows(record, present, out);
  WriteFeatures(present, out + Row::kPresent);
  const TetrisPiece piece = UnpackActive(record.active);
  out[Row::kActiveId + piece.id] = 1.0F;
  out[Row::kRotation + piece.rotation] = 1.0F;
  out[Row::kColumn + piece.x - 2] = 1.0F;
  out[Row::kRow] = static_cast<float>(piece.y) * AfterstatesLayout::kRowScale;
  out[Row::kHolder + HolderId(record)] = 1.0F;
  out[Row::kSwapped] = HasSwapped(record) ? 1.0F : 0.0F;
  for (int slot = 0; slot < queue_size && slot < QueueSize(record); ++slot) {
    out[Row::kQueue + 7 * slot + QueueSlot(record, slot)] = 1.0F;
  }
}

}  // namespace

void ExpandDrops(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * static_cast<std::int64_t>(sizeof(record)), sizeof(record));
    ExpandState(Sanitized(record), queue_size, out + i * Row::Floats(queue_size));
  }
}

}  // namespace tetrion
