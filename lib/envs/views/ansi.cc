#include <string>

#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

// Nearest colours of the xterm palette: I cyan, O yellow, T purple, S green, Z red, J blue, L
// orange.
constexpr int kPieceColour[kTetrisPieces] = {51, 226, 129, 46, 196, 21, 214};
constexpr int kLockedColour = 250;
constexpr const char* kReset = "\033[0m";

std::string Block(int colour) {
  return "\033[48;5;" + std::to_string(colour) + "m  " + kReset;
}

// Row `i` of a piece's box, two characters a cell.
std::string PieceRow(int id, int rotation, int i) {
  std::string text;
  const std::uint64_t rows = PieceRows(id, rotation) >> (16 * i);
  for (int j = 0; j < 4; ++j) text += (rows >> j & 1) != 0 ? Block(kPieceColour[id]) : "  ";
  return text;
}

// Row `r` of the field between its walls, blank where it is not played on.
std::string FieldLine(const TetrisRecord& record, int r) {
  if (r < TopRow(record)) return std::string(2 * kTetrisColumns + 2, ' ');
  const TetrisPiece piece = UnpackActive(record.active);
  std::uint64_t active = 0;
  if (r >= piece.y && r < piece.y + 4) {
    active = PieceRows(piece.id, piece.rotation) << (piece.x - 1) >> (16 * (r - piece.y));
    active = (active & 0xFFFF) >> kTetrisFieldShift;
  }
  std::string text = "|";
  for (int c = 0; c < kTetrisColumns; ++c) {
    if ((active >> c & 1) != 0) {
      text += Block(kPieceColour[piece.id]);
    } else {
      text += (FieldRow(record, r) >> c & 1U) != 0 ? Block(kLockedColour) : " .";
    }
  }
  text += "|";
  return text;
}

// Line `line` of 3 of the queue's slot: two lines of a flat piece and a gap.
std::string QueueLine(const TetrisRecord& record, int slot, int line) {
  if (slot >= QueueSize(record) || line == 2) return std::string(8, ' ');
  return PieceRow(QueueSlot(record, slot), 0, line);
}

// What stands to the right of field row `r`: counters, holder, then the queue in two columns of
// four.
std::string SideText(const TetrisRecord& record, int r) {
  constexpr int kHeldRow = 3, kQueueRow = 8, kSlotsDown = 4;
  if (r == 0) return "lines  " + std::to_string(record.lines);
  if (r == 1) return "pieces " + std::to_string(record.pieces);
  if (r == kHeldRow - 1) return HasSwapped(record) ? "held (swapped)" : "held";
  if (r == kQueueRow - 1) return "next";
  if (r >= kQueueRow) {
    const int slot = (r - kQueueRow) / 3, line = (r - kQueueRow) % 3;
    return QueueLine(record, slot, line) + "  " + QueueLine(record, slot + kSlotsDown, line);
  }
  if (HolderId(record) == kTetrisNoPiece) return r == kHeldRow ? "-" : "";
  return PieceRow(HolderId(record), HolderRotation(record), r - kHeldRow);
}

}  // namespace

std::string RenderAnsi(const TetrisRecord& untrusted) {
  const TetrisRecord record = Sanitized(untrusted);
  std::string text;
  for (int r = 0; r < kTetrisRows; ++r) {
    text += FieldLine(record, r) + "  " + SideText(record, r) + "\033[K\n";
  }
  return text + "+" + std::string(2 * kTetrisColumns, '-') + "+\033[K\n";
}

}  // namespace tetrion
