#include "lib/envs/views/gym_views.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tetrion {
namespace {

constexpr int kColumns = DictLayout::kColumns;
constexpr int kBedrock = 1;
constexpr int kLeftWall = 4;  // bedrock columns left of the field
constexpr std::int64_t kMaxBytes = DictLayout::Bytes(kTetrisMaxQueue);

// A piece in its box of four rows of four cells, byte j of a word is box column j.
struct PieceCells {
  std::uint32_t row[4];
};

// Bits 0-3 as bytes 0-3.
constexpr std::uint32_t SpreadBits(std::uint64_t bits) {
  return static_cast<std::uint32_t>((bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 |
                                    (bits & 8) << 21);
}

// By id | rotation << 3, as bits 0-4 of TetrisRecord::active and the holder are. Id 7, no piece, is
// the package's empty holder: all ones.
constexpr std::array<PieceCells, 32> MakePieceCells() {
  const tetris_tables::PieceTable pieces = tetris_tables::MakePieceTable();
  std::array<PieceCells, 32> table = {};
  for (unsigned oriented = 0; oriented < 32; ++oriented) {
    const unsigned id = oriented & 7;
    for (int i = 0; i < 4; ++i) {
      table[oriented].row[i] = id == kTetrisNoPiece
                                   ? SpreadBits(15)
                                   : SpreadBits(pieces.rows[oriented] >> (16 * i) & 15) * (id + 2);
    }
  }
  return table;
}
constexpr std::array<PieceCells, 32> kPieceCells = MakePieceCells();

// Ones in the first `size` columns, by id.
constexpr std::uint32_t BoxRow(int id) {
  return SpreadBits((1U << PieceSize(id)) - 1);
}

struct EmptyBoard {
  std::uint8_t cell[DictLayout::kRows * kColumns];
};
constexpr EmptyBoard MakeEmptyBoard() {
  EmptyBoard board = {};
  for (int r = 0; r < DictLayout::kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const bool field = r < kTetrisRows && c >= kLeftWall && c < kLeftWall + kTetrisColumns;
      board.cell[r * kColumns + c] = field ? 0 : kBedrock;
    }
  }
  return board;
}
constexpr EmptyBoard kEmptyBoard = MakeEmptyBoard();

// The eight low nibbles as eight bytes.
inline std::uint64_t SpreadNibbles(std::uint64_t nibbles) {
  nibbles &= 0xFFFFFFFFU;
  nibbles = (nibbles | nibbles << 16) & 0x0000FFFF0000FFFFULL;
  nibbles = (nibbles | nibbles << 8) & 0x00FF00FF00FF00FFULL;
  return (nibbles | nibbles << 4) & 0x0F0F0F0F0F0F0F0FULL;
}

// ORs four cells into a row.
inline void Merge(std::uint8_t* to, std::uint32_t cells) {
  std::uint32_t there;
  std::memcpy(&there, to, sizeof(there));
  there |= cells;
  std::memcpy(to, &there, sizeof(there));
}

void WriteBoard(const ColourRecord& record, const TetrisPiece& piece, std::uint8_t* board) {
  std::memcpy(board, kEmptyBoard.cell, sizeof(kEmptyBoard.cell));
  const std::byte* colours =
      reinterpret_cast<const std::byte*>(&record) + offsetof(ColourRecord, colour);
  std::uint8_t* row = board + kLeftWall;
  for (int r = 0; r < kTetrisRows; ++r, row += kColumns) {
    std::uint64_t nibbles;
    std::memcpy(&nibbles, colours + r * (kTetrisColumns / 2), sizeof(nibbles));
    const std::uint64_t left = SpreadNibbles(nibbles);
    const auto right = static_cast<std::uint16_t>((nibbles >> 32 & 15) | (nibbles >> 28 & 0xF00));
    std::memcpy(row, &left, sizeof(left));
    std::memcpy(row + sizeof(left), &right, sizeof(right));
  }
  for (int r = 0; r < TopRow(record.compact); ++r) {
    std::memset(board + r * kColumns, kBedrock, kColumns);
  }
  if (Collides(record.compact, piece)) return;
  const PieceCells& cells = kPieceCells[static_cast<std::size_t>(piece.id | piece.rotation << 3)];
  std::uint8_t* box = board + piece.y * kColumns + piece.x;
  for (int i = 0; i < PieceSize(piece.id); ++i) Merge(box + i * kColumns, cells.row[i]);
}

void WriteActiveMask(const TetrisPiece& piece, std::uint8_t* mask) {
  std::memset(mask, 0, DictLayout::kRows * kColumns);
  std::uint8_t* box = mask + piece.y * kColumns + piece.x;
  for (int i = 0; i < PieceSize(piece.id); ++i) Merge(box + i * kColumns, BoxRow(piece.id));
}

// One record's DictLayout::Bytes(queue_size).
void WriteDict(const std::byte* bytes, int queue_size, std::uint8_t* out) {
  ColourRecord record;
  std::memcpy(&record, bytes, sizeof(record));
  record.compact = Sanitized(record.compact);
  const TetrisPiece piece = UnpackActive(record.compact.active);
  WriteActiveMask(piece, out + DictLayout::kActiveMask);
  WriteBoard(record, piece, out + DictLayout::kBoard);
  std::memcpy(out + DictLayout::kHolder, kPieceCells[record.compact.holder & 31U].row, 16);
  std::uint8_t* queue = out + DictLayout::kQueue;
  const int known = std::min(queue_size, QueueSize(record.compact));
  if (known < queue_size) std::memset(queue, 0, static_cast<std::size_t>(16 * queue_size));
  for (int slot = 0; slot < known; ++slot) {
    const PieceCells& cells = kPieceCells[static_cast<unsigned>(QueueSlot(record.compact, slot))];
    for (int i = 0; i < 4; ++i) {
      std::memcpy(queue + 4 * (i * queue_size + slot), &cells.row[i], sizeof(cells.row[i]));
    }
  }
}

}  // namespace

void ExpandDict(const std::byte* records, std::int64_t n, int queue_size, std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    WriteDict(records + i * static_cast<std::int64_t>(sizeof(ColourRecord)), queue_size,
              out + i * DictLayout::Bytes(queue_size));
  }
}

void ExpandFlat(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  const std::int64_t floats = FlatLayout::Floats(queue_size);
  alignas(64) std::uint8_t cells[kMaxBytes];
  for (std::int64_t i = 0; i < n; ++i, out += floats) {
    WriteDict(records + i * static_cast<std::int64_t>(sizeof(ColourRecord)), queue_size, cells);
    for (std::int64_t k = 0; k < floats; ++k) out[k] = static_cast<float>(cells[k]);
  }
}

ColourRecord UncolouredRecord(const TetrisRecord& record) {
  ColourRecord colours = {};
  colours.compact = record;
  for (int r = 0; r < kTetrisRows; ++r) {
    for (int c = 0; c < kTetrisColumns; ++c) {
      const unsigned cell = (FieldRow(record, r) >> c & 1U) * kUnknownColour;
      colours.colour[r][c / 2] |= static_cast<std::uint8_t>(cell << (4 * (c & 1)));
    }
  }
  return colours;
}

}  // namespace tetrion
