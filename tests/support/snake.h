#pragma once

#include <cstdint>
#include <type_traits>

#include "lib/core/philox.h"
#include "lib/envs/registry.h"

// An environment that the product does not have: what it takes to add one is this header, snake.cc
// and one call of RegisterEnv (in the product: one line in lib/envs/registry.cc).

namespace tetrion::testing {

inline constexpr int kSnakeSide = 10;
inline constexpr int kSnakeCells = kSnakeSide * kSnakeSide;
inline constexpr int kSnakeStart = 3;  // length at the start
inline constexpr std::uint8_t kSnakeFood = 255;

// The `snake` record and working state. 108 bytes.
struct SnakeRecord {
  std::uint8_t cell[kSnakeCells];  // row-major: 0 free, kSnakeFood, else the steps it stays body
  std::uint8_t length;             // the head's cell says so too
  std::uint8_t head;               // 0..99
  std::uint8_t reserved[2];        // 0
  std::uint32_t drawn;             // meals so far, the food that lies there included
};
static_assert(sizeof(SnakeRecord) == 108 && std::is_trivially_copyable_v<SnakeRecord>);

// Puts food on a free cell: the first one from cell (word 0 of a token's kInitialState block) on.
inline void PutFood(SnakeRecord& snake, std::uint64_t seed, std::uint64_t token) {
  const PhiloxBlock draw = PhiloxDraw(seed, token, snake.drawn++, PhiloxPurpose::kInitialState);
  const auto first = static_cast<int>(BoundedDraw(draw.word[0], kSnakeCells));
  for (int i = 0; i < kSnakeCells; ++i) {
    std::uint8_t& cell = snake.cell[(first + i) % kSnakeCells];
    if (cell != 0) continue;
    cell = kSnakeFood;
    return;
  }
}

// A snake that lies in the fifth row and looks to the right.
inline SnakeRecord SnakeReset(std::uint64_t seed, std::uint64_t token) {
  SnakeRecord snake = {};
  for (int i = 1; i <= kSnakeStart; ++i)
    snake.cell[4 * kSnakeSide + i] = static_cast<std::uint8_t>(i);
  snake.length = kSnakeStart;
  snake.head = 4 * kSnakeSide + kSnakeStart;
  PutFood(snake, seed, token);
  return snake;
}

// One step, 0 up, 1 right, 2 down, 3 left; returns the reward: 1 for food, -1 for a wall or the
// body, where the game ends and nothing moves, else 0.
inline int SnakeStep(SnakeRecord& snake, int action, std::uint64_t seed, std::uint64_t token) {
  const int column = snake.head % kSnakeSide + (action == 1) - (action == 3);
  const int row = snake.head / kSnakeSide + (action == 2) - (action == 0);
  if (column < 0 || column >= kSnakeSide || row < 0 || row >= kSnakeSide) return -1;
  std::uint8_t& next = snake.cell[row * kSnakeSide + column];
  const bool eats = next == kSnakeFood;
  if (!eats && next > 1) return -1;  // 1 is the tail's end, which moves on
  for (std::uint8_t& cell : snake.cell) {
    if (!eats && cell > 0 && cell != kSnakeFood) --cell;
  }
  if (eats) snake.length += 1;
  next = snake.length;
  snake.head = static_cast<std::uint8_t>(row * kSnakeSide + column);
  if (eats) PutFood(snake, seed, token);
  return eats ? 1 : 0;
}

EnvEntry SnakeEntry();

}  // namespace tetrion::testing
