#pragma once

// TetrisStep for neighbours at once. What an action does to a falling piece, unless the piece locks
// or is swapped, is the same few operations for all actions: these are done for many lanes without
// a branch that depends on a lane. The others, about a quarter of them at random play, follow one
// by one. For the host only; docs/PERFORMANCE.md has what it is worth.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/envs/lane_accounts.h"
#include "lib/envs/tetris/colour_record.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/envs/tetris/tetris_reward.h"
#include "lib/envs/tetris/tetris_rules.h"
#include "lib/envs/tetris/tetris_step.h"

namespace tetrion {

namespace tetris_together {

// Lanes whose pieces move in one go: enough for the widest vectors, and what is known of them stays
// in the nearest cache.
inline constexpr std::size_t kBlock = 32;
using Word = std::uint16_t;  // a packed piece: TetrisRecord::active

inline Word ActionOf(std::int32_t action) {
  return static_cast<Word>(action & (kTetrisActions - 1));
}

// The pieces [n] after their moves, whether they are free there or not.
inline void Move(std::size_t n, const Word* piece, const std::int32_t* actions, Word* moved) {
  for (std::size_t i = 0; i < n; ++i) moved[i] = MovedPacked(piece[i], ActionOf(actions[i]));
}

// 1 for each of n pieces that collides with nothing in its record, else 0.
template <typename Record>
void TellFree(std::size_t n, const Record* records, const Word* piece, Word* is_free) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < n; ++i) {
    is_free[i] = Collides(CompactOf(records[i]), piece[i]) ? 0 : 1;
  }
}

// Moves n <= kBlock pieces and lets them sink by a row. Lists those, numbered from `first` on, that
// are not done: they lock where they are now, or their action is a swap. Returns how many.
template <typename Record>
[[gnu::always_inline]] inline std::size_t MoveAndSink(std::size_t first, std::size_t n,
                                                      Record* records, const std::int32_t* actions,
                                                      std::uint8_t* pending) {
  alignas(64) Word piece[kBlock], moved[kBlock] = {}, is_free[kBlock];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < n; ++i) piece[i] = CompactOf(records[i]).active;
  Move(n, piece, actions, moved);
  TellFree(n, records, moved, is_free);
  for (std::size_t i = 0; i < n; ++i) {
    const int mask = -is_free[i];
    moved[i] = static_cast<Word>((piece[i] ^ ((piece[i] ^ moved[i]) & mask)) + kActiveRow);
  }
  TellFree(n, records, moved, is_free);
  for (std::size_t i = 0; i < n; ++i) {
    const Word action = ActionOf(actions[i]);
    const int falls = (action != kTetrisSwap) & (action != kTetrisHardDrop);
    is_free[i] = static_cast<Word>(is_free[i] & falls);
    moved[i] = static_cast<Word>(moved[i] - (1 - is_free[i]) * kActiveRow);
  }
  std::size_t count = 0;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < n; ++i) {
    CompactOf(records[i]).active = moved[i];
    pending[count] = static_cast<std::uint8_t>(first + i);
    count += 1U - is_free[i];
  }
  return count;
}

}  // namespace tetris_together

// One action of each of n <= kMost games, whose records and piece sources are [n]: what TetrisStep
// does to each, and what it brought as the row wants it. Of an action outside 0..7 the lowest
// three bits count. Not for games whose pieces appear above the field.
template <std::size_t kMost, typename Record, typename Pieces>
void TetrisStepTogether(std::size_t n, Record* records, Pieces* pieces, const std::int32_t* actions,
                        TetrisReward reward, LaneOutcomes<kMost>& outcomes) {
  namespace together = tetris_together;
  std::fill_n(outcomes.reward, n, 0.0F);
  std::fill_n(outcomes.lines, n, 0U);
  std::fill_n(outcomes.terminated, n, 0U);
  static_assert(kMost <= 256, "a number is a byte");
  std::uint8_t pending[kMost], swapping[kMost], locking[kMost];
  std::size_t left = 0, swaps = 0, locks = 0, first = 0;
  for (; first + together::kBlock <= n; first += together::kBlock) {
    left += together::MoveAndSink(first, together::kBlock, records + first, actions + first,
                                  pending + left);
  }
  if (first < n) {
    left +=
        together::MoveAndSink(first, n - first, records + first, actions + first, pending + left);
  }
  for (std::size_t k = 0; k < left; ++k) {
    const auto swap =
        static_cast<std::size_t>(together::ActionOf(actions[pending[k]]) == kTetrisSwap);
    swapping[swaps] = locking[locks] = pending[k];
    swaps += swap;
    locks += 1 - swap;
  }
  for (const std::size_t i : std::span(swapping, swaps)) {
    locking[locks] = static_cast<std::uint8_t>(i);
    TetrisRecord& record = CompactOf(records[i]);
    const TetrisPiece piece = SwapPiece(record, UnpackActive(record.active), pieces[i]);
    locks += static_cast<std::size_t>(Sink(record, piece));
  }
  for (const std::size_t i : std::span(locking, locks)) {
    const LaneOutcome outcome =
        ForRow(CommitPiece(CompactOf(records[i]), pieces[i], ColoursOf(records[i])), reward);
    outcomes.reward[i] = outcome.reward;
    outcomes.lines[i] = outcome.lines;
    outcomes.terminated[i] = outcome.terminated ? 1 : 0;
  }
}

}  // namespace tetrion
