#include "lib/envs/views/packed2.h"

#include <cstring>

namespace tetrion {
namespace {

using L = Packed2Layout;
using packed2::kRightFrame;

// A picture is drawn four rows of the field at a time. The three lines of pixels that show a row
// are alike; of these 20 bytes:
//
//   bytes    0-1      2-9            10-11   12-14         15      16-18
//   show     frame    field, frame   white   held piece,   white   queue 4-6
//                                            queue 0-3
using Bytes = std::uint8_t __attribute__((vector_size(32)));
using Words = std::uint32_t __attribute__((vector_size(32)));
using Rows = std::uint64_t __attribute__((vector_size(32)));  // a word of each of four rows

static_assert(L::kFieldX == 8 && L::kHolderX == 48 && L::kQueueX == 48 && L::kSlotX == 16);
static_assert(L::kHolderY == L::kFieldY && L::kCell == 3 && L::kSlotY % L::kCell == 0);
static_assert((L::kQueueY - L::kFieldY) % L::kCell == 0);
constexpr int kFirstQueueRow = (L::kQueueY - L::kFieldY) / L::kCell;
constexpr int kRowsASlot = L::kSlotY / L::kCell;
constexpr int kBytesARow = L::kCell * L::kRowBytes;
constexpr std::uint64_t kLeftFrame = std::uint64_t{5 * L::kFrameShade} << 12;
constexpr std::uint64_t kFrameRow = 0x0555555555555555 * L::kFrameShade | kRightFrame;

// Byte b of the eight that show a row's cells shows two of these at most. Bit c of the row's word
// is cell c; bytes 0 to 5 show cells of its low byte, 6 and 7 of its high byte. For four rows:
// where the two cells' bits are, and which pixels they fill with shade 1.
struct CellsOfBytes {
  alignas(32) std::uint8_t bit[2][32];
  alignas(32) std::uint8_t pixels[2][32];
};
constexpr CellsOfBytes MakeCellsOfBytes() {
  CellsOfBytes table = {};
  for (int i = 0; i < 32; ++i) {
    const int first = i % 8 * 4 / L::kCell;
    for (int cell = 0; cell < 2; ++cell) {
      table.bit[cell][i] = static_cast<std::uint8_t>(1U << ((first + cell) % 8));
    }
    for (int pixel = 0; pixel < 4; ++pixel) {
      const int cell = (i % 8 * 4 + pixel) / L::kCell;
      if (cell >= kTetrisColumns) continue;
      std::uint8_t& pixels = table.pixels[cell - first][i];
      pixels = static_cast<std::uint8_t>(pixels | 1U << (2 * pixel));
    }
  }
  return table;
}

template <typename Vector>
Vector Load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename Vector>
void Store(void* to, Vector vector) {
  std::memcpy(to, &vector, sizeof(vector));
}

// `kVectors` x 32 bytes of 0. A plain loop becomes a call or a `rep stos`, which takes as long as a
// third of the picture.
template <int kVectors>
void StoreNone(void* to) {
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) Store(static_cast<Rows*>(to) + i, Rows{});
}

// The cells of four rows of a record, the first row's lowest, as 30 pixels of shade 1 each.
Rows FourRows(std::uint64_t rows) {
  static constexpr CellsOfBytes kTable = MakeCellsOfBytes();
  rows = rows >> kTetrisFieldShift & 0x03FF03FF03FF03FF;
  const Rows repeated = {rows, rows, rows, rows};
  const auto all = reinterpret_cast<Bytes>(repeated);
  const Bytes cells = __builtin_shufflevector(all, all, 0, 0, 0, 0, 0, 0, 1, 1,  //
                                              2, 2, 2, 2, 2, 2, 3, 3,            //
                                              20, 20, 20, 20, 20, 20, 21, 21,    //
                                              22, 22, 22, 22, 22, 22, 23, 23);
  Bytes pixels = {};
  for (int cell = 0; cell < 2; ++cell) {
    const auto bit = Load<Bytes>(kTable.bit[cell]);
    pixels |= reinterpret_cast<Bytes>((cells & bit) == bit) & Load<Bytes>(kTable.pixels[cell]);
  }
  return reinterpret_cast<Rows>(pixels);
}

// The 32 pixels from kFieldX on of all rows: locked cells, the active piece, the frame.
void DrawField(const TetrisRecord& record, std::uint64_t* field) {
  for (int r = 0; r < kTetrisRows + 4; r += 4) {
    const Rows cells = FourRows(Load<std::uint64_t>(record.row + r));
    Store(field + r, cells * L::kLockedShade | kRightFrame);
  }
  for (int r = 0; r < TopRow(record); ++r) field[r] = kFrameRow;
  const TetrisPiece piece = UnpackActive(record.active);
  // Its box lies in two of the vectors, which are stored as they were loaded: a load that a store
  // covers in part waits for it.
  const std::uint64_t box = packed2::ActiveBox(piece);
  const int bits = piece.y % 4 * 16;
  std::uint64_t* const to = field + piece.y / 4 * 4;
  Store(to, Load<Rows>(to) | FourRows(box << bits) * L::kPieceShade);
  Store(to + 4, Load<Rows>(to + 4) | FourRows(box >> (63 - bits) >> 1) * L::kPieceShade);
}

// The 16 pixels from kHolderX and those from 64 on of all rows: the held piece and the queue.
void DrawPieces(const TetrisRecord& record, std::uint64_t* near, std::uint64_t* far) {
  StoreNone<5>(near);
  StoreNone<5>(far);
  if (HolderId(record) != kTetrisNoPiece) {
    const std::uint64_t box = PieceRows(HolderId(record), HolderRotation(record));
    for (int i = 0; i < 4; ++i) near[i] = packed2::BoxPixels(box, i, packed2::HolderShade(record));
  }
  for (int slot = 0; slot < QueueSize(record); ++slot) {
    const std::uint64_t box = PieceRows(QueueSlot(record, slot), 0);
    std::uint64_t* const rows =
        (slot < L::kSlotsDown ? near : far) + kFirstQueueRow + slot % L::kSlotsDown * kRowsASlot;
    for (int i = 0; i < 2; ++i) rows[i] = packed2::BoxPixels(box, i, L::kPieceShade);
  }
}

// The lines of a row, whose 20 bytes lie lowest in `line`; writes four bytes more.
void PutRow(std::uint8_t* to, Rows line) {
  const auto words = reinterpret_cast<Words>(line);
  Store(to, __builtin_shufflevector(words, words, 0, 1, 2, 3, 4, 0, 1, 2));
  Store(to + 32, __builtin_shufflevector(words, words, 3, 4, 0, 1, 2, 3, 4, 5));
}

}  // namespace

void DrawPacked2(const TetrisRecord& record, std::uint8_t* out) {
  alignas(32) std::uint64_t field[kTetrisRows + 4], near[kTetrisRows], far[kTetrisRows];
  DrawField(record, field);
  DrawPieces(record, near, far);
  StoreNone<4>(out);  // the rows above the field and a little more
  std::uint8_t* to = out + L::kFieldY * L::kRowBytes;
  for (int r = 0; r < kTetrisRows; r += 4, to += 4 * kBytesARow) {
    const auto cells = Load<Rows>(field + r), tail = Load<Rows>(far + r);
    const Rows left = cells << 16 | kLeftFrame, right = cells >> 48 | Load<Rows>(near + r) << 32;
    const Rows even = __builtin_shufflevector(left, right, 0, 4, 2, 6);
    const Rows odd = __builtin_shufflevector(left, right, 1, 5, 3, 7);
    PutRow(to, __builtin_shufflevector(even, tail, 0, 1, 4, 4));
    PutRow(to + kBytesARow, __builtin_shufflevector(odd, tail, 0, 1, 5, 5));
    PutRow(to + 2 * kBytesARow, __builtin_shufflevector(even, tail, 2, 3, 6, 6));
    PutRow(to + 3 * kBytesARow, __builtin_shufflevector(odd, tail, 2, 3, 7, 7));
  }
  for (int line = 0; line < L::kFrame; ++line, to += L::kRowBytes) {
    Store(to, Rows{kFrameRow << 16 | kLeftFrame, kFrameRow >> 48, 0, 0});
  }
  StoreNone<2>(to);
  StoreNone<1>(out + L::kBytes - sizeof(Rows));
}

void ExpandPacked2(const std::byte* records, std::int64_t record_bytes, std::int64_t n,
                   std::uint8_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    TetrisRecord record;
    std::memcpy(&record, records + i * record_bytes, sizeof(record));
    SanitizePieces(record);
    DrawPacked2(record, out + i * Packed2Layout::kBytes);
  }
}

void ExpandPacked2Shades(const std::byte* records, std::int64_t n, int /*queue_size*/, float* out) {
  for (std::int64_t i = 0; i < n * Packed2Layout::kBytes; ++i) {
    for (int pixel = 0; pixel < 4; ++pixel) {
      *out++ = Packed2Shade(std::to_integer<unsigned>(records[i]) >> (2 * pixel));
    }
  }
}

void ExpandPixels(const std::byte* records, std::int64_t n, int queue_size, float* out) {
  std::uint8_t picture[Packed2Layout::kBytes];
  for (std::int64_t i = 0; i < n; ++i) {
    ExpandPacked2(records + i * static_cast<std::int64_t>(sizeof(TetrisRecord)),
                  sizeof(TetrisRecord), 1, picture);
    ExpandPacked2Shades(reinterpret_cast<const std::byte*>(picture), 1, queue_size,
                        out + i * Packed2Layout::kPixels);
  }
}

}  // namespace tetrion
