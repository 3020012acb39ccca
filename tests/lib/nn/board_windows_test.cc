#include "lib/nn/board_windows.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kWall = 0xFFFFF;
constexpr int kBoardColumns = 10, kBoardStride = 12;

std::uint64_t Window(std::uint64_t left, std::uint64_t middle, std::uint64_t right) {
  return left | middle << 20 | right << 40;
}

TEST(BoardWindowsTest, WindowIsAColumnBetweenItsNeighboursAndWallsAreFull) {
  BoardWindows windows;
  windows.Allocate(1, kBoardColumns);
  std::vector<float> board(kBoardStride, 7.0F);
  for (int c = 0; c < kBoardColumns; ++c)
    board[static_cast<std::size_t>(c)] = static_cast<float>(c + 1);
  windows.Find(board.data(), kBoardStride, 1);
  ASSERT_EQ(windows.boards(), 1);
  ASSERT_EQ(windows.count(), kBoardColumns);
  for (int c = 0; c < kBoardColumns; ++c) {
    const auto middle = static_cast<std::uint64_t>(c + 1);
    EXPECT_EQ(
        windows.bits()[windows.OfBoard(0)[c]],
        Window(c == 0 ? kWall : middle - 1, middle, c == kBoardColumns - 1 ? kWall : middle + 1));
  }
}

TEST(BoardWindowsTest, EveryBoardHasItsWindowsAndEqualOnesAreFoundOnce) {
  const EnvSpec env = testing::BoardsEnv();
  BoardWindows windows;
  windows.Allocate(16 * 40, kBoardColumns);
  for (std::uint64_t round = 1; round <= 50; ++round) {  // nothing is left of the round before
    const int boards = static_cast<int>(round * 12);
    const std::vector<float> views = testing::RandomViews(env, 16, round);
    windows.Find(views.data(), kBoardStride, boards);
    std::set<std::uint64_t> distinct;
    for (int board = 0; board < boards; ++board) {
      const float* column = views.data() + board * kBoardStride;
      for (int c = 0; c < kBoardColumns && board < 40;
           ++c) {  // of state 0; the rest lies elsewhere
        const auto middle = static_cast<std::uint64_t>(column[c]);
        ASSERT_EQ(windows.bits()[windows.OfBoard(board)[c]] >> 20 & kWall, middle);
      }
      for (int c = 0; c < kBoardColumns; ++c)
        distinct.insert(windows.bits()[windows.OfBoard(board)[c]]);
    }
    EXPECT_EQ(distinct.size(), static_cast<std::size_t>(windows.count()));
    EXPECT_LT(windows.count(), boards * kBoardColumns);
  }
}

TEST(BoardWindowsTest, NumbersThatAreNoColumnsAreEmptyOnes) {
  BoardWindows windows;
  windows.Allocate(1, kBoardColumns);
  std::vector<float> board(kBoardStride, 0.0F);
  board[0] = -1.0F;
  board[1] = std::numeric_limits<float>::quiet_NaN();
  board[2] = std::numeric_limits<float>::infinity();
  board[3] = 1048576.0F;
  windows.Find(board.data(), kBoardStride, 1);
  EXPECT_EQ(windows.bits()[windows.OfBoard(0)[0]], Window(kWall, 0, 0));
  EXPECT_EQ(windows.bits()[windows.OfBoard(0)[9]], Window(0, 0, kWall));
  EXPECT_EQ(windows.count(), 3);
}

}  // namespace
}  // namespace tetrion
