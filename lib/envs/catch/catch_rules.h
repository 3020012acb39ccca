#pragma once

#include <cstdint>
#include <type_traits>

#include "lib/core/philox.h"

// Catch: a ball falls, a paddle on the lowest row has to be below it in the end. As bsuite's
// `catch` (I. Osband and others, "Behaviour Suite for Reinforcement Learning", arXiv:1908.03568),
// with nine columns in place of five.

namespace tetrion {

inline constexpr int kCatchRows = 10, kCatchColumns = 9;
inline constexpr int kCatchCells = kCatchRows * kCatchColumns;
inline constexpr int kCatchActions = 3;  // left, stay, right

// The `catch` record and working state. 8 bytes.
struct CatchRecord {
  std::uint8_t ball_row;     // 0 (top)..9
  std::uint8_t ball_column;  // 0..8
  std::uint8_t paddle;       // its column, 0..8
  std::uint8_t reserved[5];  // 0
};
static_assert(sizeof(CatchRecord) == 8 && std::is_trivially_copyable_v<CatchRecord>);

// The ball at the top in column (word 0 of the token's kInitialState block), the paddle in the
// middle.
inline CatchRecord CatchReset(std::uint64_t seed, std::uint64_t token_id) {
  const PhiloxBlock draw = PhiloxDraw(seed, token_id, 0, PhiloxPurpose::kInitialState);
  CatchRecord state = {};
  state.ball_column = static_cast<std::uint8_t>(BoundedDraw(draw.word[0], kCatchColumns));
  state.paddle = kCatchColumns / 2;
  return state;
}

inline bool CatchOver(const CatchRecord& state) {
  return state.ball_row + 1 >= kCatchRows;
}

// The paddle moves, at an edge it stays; the ball falls by a row. Returns the reward: in the last
// row 1 if the ball was caught, else -1; before it 0.
inline int CatchStep(CatchRecord& state, int action) {
  const int to = state.paddle + action - 1;
  if (to >= 0 && to < kCatchColumns) state.paddle = static_cast<std::uint8_t>(to);
  state.ball_row += 1;
  if (!CatchOver(state)) return 0;
  return state.ball_column == state.paddle ? 1 : -1;
}

}  // namespace tetrion
