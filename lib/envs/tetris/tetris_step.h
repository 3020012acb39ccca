#pragma once

// The transitions of Tetris, on the tables and tests of tetris_rules.h. `Pieces` is a piece source
// (tetris_pieces.h). A record passed in must come from TetrisReset or Sanitized. `Colours`, passed
// by copy, is told of locked cells: NoColours or LockedColours (colour_record.h).

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/envs/lane_account.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/envs/tetris/tetris_reward.h"
#include "lib/envs/tetris/tetris_rules.h"

namespace tetrion {

// What the row wants of an outcome.
TETRION_HOST_DEVICE inline LaneOutcome ForRow(const TetrisOutcome& outcome, TetrisReward kind) {
  const int reward = kind == TetrisReward::kLines ? outcome.lines : outcome.reward;
  return {outcome.illegal ? kIllegalReward : static_cast<float>(reward),
          static_cast<std::uint32_t>(outcome.lines), outcome.terminated};
}

// Takes the queue's front as the active piece and refills the queue by one; without a queue the
// piece is drawn now. No collision check. A piece that appears above the field is recorded at the
// top row.
template <typename Pieces>
TETRION_HOST_DEVICE_INLINE TetrisPiece SpawnPiece(TetrisRecord& record, Pieces& pieces) {
  const auto drawn = static_cast<std::uint32_t>(pieces.Next());
  const int size = QueueSize(record);
  const int id = static_cast<int>(size == 0 ? drawn : record.queue & 7);
  if (size > 0) record.queue = record.queue >> 3 | drawn << (3 * (size - 1));
  return {id, 0, SpawnX(id), TopRow(record)};
}

// What a game begins with.
struct TetrisSetup {
  int queue_size;            // pieces in the preview, 0..kTetrisMaxQueue
  int rows = kTetrisRows;    // of the field, kTetrisFewestRows..kTetrisRows
  bool spawn_above = false;  // pieces appear above the field; for games played by placements
  TetrisReward reward = TetrisReward::kSquares;
};

// An empty field, a full queue and the first piece.
template <typename Pieces, typename Colours = NoColours>
TETRION_HOST_DEVICE inline void TetrisReset(TetrisRecord& record, const TetrisSetup& setup,
                                            Pieces& pieces, Colours colours = {}) {
  colours.Clear();
  for (int r = 0; r < kTetrisRows; ++r) record.row[r] = kTetrisEmptyRow;
  for (int r = kTetrisRows; r < kTetrisRows + 4; ++r) record.row[r] = kTetrisFloorRow;
  record.holder = PackHolder(kTetrisNoPiece, 0);
  if (setup.spawn_above) record.holder |= kTetrisSpawnsAbove;
  record.flags = static_cast<std::uint8_t>(setup.queue_size << 1 | (kTetrisRows - setup.rows) << 4);
  record.queue = 0;
  record.lines = 0;
  record.pieces = 0;
  for (int slot = 0; slot < setup.queue_size; ++slot) {
    record.queue |= static_cast<std::uint32_t>(pieces.Next()) << (3 * slot);
  }
  record.active = PackActive(SpawnPiece(record, pieces));
}

// Clears the full ones of the rows `top`..`top`+3 that are in the field; returns how many there
// were.
template <typename Colours = NoColours>
TETRION_HOST_DEVICE inline int ClearRows(TetrisRecord& record, int top, Colours colours = {}) {
  int lines = 0;
  for (int r = top < 0 ? 0 : top; r < top + 4; ++r) {
    if (record.row[r] != kTetrisFullRow) continue;
    ++lines;
    for (int above = r; above > 0; --above) record.row[above] = record.row[above - 1];
    record.row[0] = kTetrisEmptyRow;
    colours.ClearRow(r);
  }
  return lines;
}

// Four rows from row `y` on, which may begin up to four rows above the highest one that is played
// on: above it is nothing but walls.
TETRION_HOST_DEVICE inline std::uint64_t LoadRowsFromAbove(const TetrisRecord& record, int y) {
  const int above = TopRow(record) - y;
  constexpr std::uint64_t kEmpty = kTetrisEmptyRow * 0x0001000100010001ULL;
  if (above <= 0) return LoadRows(record.row + y);
  if (above >= 4) return kEmpty;
  return LoadRows(record.row + TopRow(record)) << (16 * above) | kEmpty >> (64 - 16 * above);
}

// What a piece that came from above the field did.
struct LandingFromAbove {
  int y = 0;  // row of the box's top edge where the piece lay, before rows were cleared
  int lines = 0;
  bool inside = true;  // no cell is left above the field
};

// Drops the piece from above the field, whatever its y, locks what lies in the field and clears
// rows, which may make room for the rest. Where that is not `inside`, the rest is lost: the game is
// over.
template <typename Colours = NoColours>
TETRION_HOST_DEVICE inline LandingFromAbove LandFromAbove(TetrisRecord& record, TetrisPiece piece,
                                                          Colours colours = {}) {
  const int top = TopRow(record);
  const std::uint64_t cells = PieceRows(piece.id, piece.rotation) << (piece.x - 1);
  piece.y = top - 4;
  while ((LoadRowsFromAbove(record, piece.y + 1) & cells) == 0) ++piece.y;
  LandingFromAbove landing = {piece.y};
  const std::uint64_t merged = LoadRowsFromAbove(record, piece.y) | cells;
  const int above = piece.y < top ? top - piece.y : 0;  // rows of the box above the field, 0..4
  for (int i = above; i < 4; ++i) {
    record.row[piece.y + i] = static_cast<std::uint16_t>(merged >> (16 * i));
  }
  colours.Lock(piece, above, 4);
  if (AnyFullRow(merged)) landing.lines = ClearRows(record, piece.y, colours);
  piece.y += landing.lines;
  for (int i = 0; i < above; ++i) {
    const auto of_row = static_cast<std::uint16_t>(cells >> (16 * i));
    if (of_row == 0) continue;
    if (piece.y + i < top) {
      landing.inside = false;
    } else {
      record.row[piece.y + i] |= of_row;
      colours.Lock(piece, i, i + 1);
    }
  }
  return landing;
}

// Counts a locked piece and spawns the next one.
template <typename Pieces>
TETRION_HOST_DEVICE_INLINE void NextPiece(TetrisRecord& record, int lines, Pieces& pieces) {
  record.lines += static_cast<std::uint32_t>(lines);
  record.pieces += 1;
  record.active = PackActive(SpawnPiece(record, pieces));
  record.flags &= static_cast<std::uint8_t>(~kTetrisSwapped);
}

// What locking a piece is worth.
TETRION_HOST_DEVICE inline TetrisOutcome LockedOutcome(int lines, bool terminated) {
  const int goes_on = terminated ? 0 : 1;  // a factor: a branch would be hard to predict
  return {.reward = goes_on * (10 * lines * lines + 1), .lines = lines, .terminated = terminated};
}

// The row of the box's top edge where a piece of these cells comes to lie that is free at row `y`.
TETRION_HOST_DEVICE_INLINE int LandingRow(const TetrisRecord& record, std::uint64_t cells, int y) {
#if defined(__AVX2__) && !defined(__CUDA_ARCH__)
  // Two bits for each of 16 rows from `first` on, set where the piece would be free.
  const auto free_rows = [&record, cells](int first) {
    __m256i met = _mm256_setzero_si256();
    for (int i = 0; i < 4; ++i) {
      const auto* rows = reinterpret_cast<const __m256i*>(record.row + first + i);
      const __m256i of_piece = _mm256_set1_epi16(static_cast<std::int16_t>(cells >> (16 * i)));
      met = _mm256_or_si256(met, _mm256_and_si256(_mm256_loadu_si256(rows), of_piece));
    }
    const __m256i is_free = _mm256_cmpeq_epi16(met, _mm256_setzero_si256());
    return std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(is_free))};
  };
  // Rows 1 to 16, and 5 to 20. In row 20 no piece is free, it would lie in the floor: a bit is
  // always found.
  const std::uint64_t taken = ~(free_rows(1) | free_rows(5) << 8);
  return y + std::countr_zero(taken >> (2 * y)) / 2;
#else
  while ((LoadRows(record.row + y + 1) & cells) == 0) ++y;
  return y;
#endif
}

// Drops and locks the active piece, clears rows, spawns the next one. A piece that collides where
// it is, as after a swap, ends the game with nothing locked.
template <typename Pieces, typename Colours = NoColours>
TETRION_HOST_DEVICE_INLINE TetrisOutcome CommitPiece(TetrisRecord& record, Pieces& pieces,
                                                     Colours colours = {}) {
  TetrisPiece piece = UnpackActive(record.active);
  if (SpawnsAbove(record)) {
    const LandingFromAbove landing = LandFromAbove(record, piece, colours);
    NextPiece(record, landing.lines, pieces);
    return LockedOutcome(landing.lines, !landing.inside);
  }
  if (Collides(record)) return {.terminated = true};
  const std::uint64_t cells = CellRows(record.active);
  piece.y = LandingRow(record, cells, piece.y);
  const std::uint64_t merged = LoadRows(record.row + piece.y) | cells;
  StoreRows(record.row + piece.y, merged);
  colours.Lock(piece, 0, 4);
  const int lines = AnyFullRow(merged) ? ClearRows(record, piece.y, colours) : 0;
  NextPiece(record, lines, pieces);
  return LockedOutcome(lines, Collides(record));
}

// Exchanges the active piece with the holder, or with the queue's front while the holder is empty.
// The held orientation is kept. No collision check; nothing happens twice for one piece.
template <typename Pieces>
TETRION_HOST_DEVICE_INLINE TetrisPiece SwapPiece(TetrisRecord& record, const TetrisPiece& piece,
                                                 Pieces& pieces) {
  const bool swaps = !HasSwapped(record);
  const TetrisPiece held = {HolderId(record), HolderRotation(record), SpawnX(HolderId(record)),
                            TopRow(record)};
  record.flags |= kTetrisSwapped;
  const std::uint8_t holder = PackHolder(piece.id, piece.rotation);
  if (swaps && held.id == kTetrisNoPiece) {  // once a game
    record.holder = holder;
    return SpawnPiece(record, pieces);
  }
  // Chosen bit by bit: a random player swaps again so often that a branch would be mispredicted.
  const int mask = swaps ? -1 : 0;
  const auto choose = [mask](int kept, int taken) { return kept ^ ((kept ^ taken) & mask); };
  record.holder = static_cast<std::uint8_t>(choose(record.holder, holder));
  return {choose(piece.id, held.id), choose(piece.rotation, held.rotation), choose(piece.x, held.x),
          choose(piece.y, held.y)};
}

// The active piece after a move or rotation, if that is free; as it is otherwise.
TETRION_HOST_DEVICE inline TetrisPiece MovePiece(const TetrisRecord& record, int action) {
  const std::uint16_t moved = MovedPacked(record.active, static_cast<std::uint16_t>(action));
  return UnpackActive(Collides(record, moved) ? record.active : moved);
}

// Gravity: `piece` becomes the active one, a row lower if it is free there. Returns whether it is
// not, so that it locks.
TETRION_HOST_DEVICE_INLINE bool Sink(TetrisRecord& record, TetrisPiece piece) {
  piece.y += 1;
  const bool locks = Collides(record, piece);
  piece.y -= locks ? 1 : 0;
  record.active = PackActive(piece);
  return locks;
}

// One action 0..7 of the player, then gravity (not after a hard drop). The caller has checked the
// range. Not for a game whose pieces appear above the field.
template <typename Pieces, typename Colours = NoColours>
TETRION_HOST_DEVICE inline TetrisOutcome TetrisStep(TetrisRecord& record, int action,
                                                    Pieces& pieces, Colours colours = {}) {
  if (action == kTetrisHardDrop) return CommitPiece(record, pieces, colours);
  TetrisPiece piece = UnpackActive(record.active);
  piece = action == kTetrisSwap ? SwapPiece(record, piece, pieces) : MovePiece(record, action);
  return Sink(record, piece) ? CommitPiece(record, pieces, colours) : TetrisOutcome{};
}

// One placement 0..39: the piece is turned `action % 4` times, put over column `action / 4` and
// hard dropped from where it is. An illegal one ends the game or is a NOOP; its reward is
// kIllegalReward.
template <typename Pieces, typename Colours = NoColours>
TETRION_HOST_DEVICE inline TetrisOutcome PlacementStep(TetrisRecord& record, int action,
                                                       bool illegal_is_noop, Pieces& pieces,
                                                       Colours colours = {}) {
  if ((PlacementMask(record) >> action & 1) == 0) {
    TetrisOutcome outcome;
    // Above the field is no gravity.
    if (illegal_is_noop && !SpawnsAbove(record)) {
      outcome = TetrisStep(record, kTetrisNoop, pieces, colours);
    }
    outcome.terminated |= !illegal_is_noop;
    outcome.illegal = true;
    return outcome;
  }
  TetrisPiece piece = UnpackActive(record.active);
  piece.rotation = (piece.rotation + action) & 3;
  piece.x = action / 4 + 4 - PieceSize(piece.id) / 2;
  record.active = PackActive(piece);
  return CommitPiece(record, pieces, colours);
}

}  // namespace tetrion
