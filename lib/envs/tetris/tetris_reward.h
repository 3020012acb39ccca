#pragma once

#include <cstdint>
#include <string_view>

namespace tetrion {

// What an action that locks a piece and clears n rows earns: 10 n^2 + 1, and 0 where the game ends,
// as in tetris-gymnasium; or n. An action that locks none earns 0.
enum class TetrisReward : std::uint8_t { kSquares, kLines };

// As settings call them, "squares" and "lines"; kSquares for any other name.
constexpr TetrisReward TetrisRewardOf(std::string_view name) {
  return name == "lines" ? TetrisReward::kLines : TetrisReward::kSquares;
}

}  // namespace tetrion
