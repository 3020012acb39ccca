// Neighbours that take their actions at once, held against TetrisStep of one after the other.

#include "lib/envs/tetris/tetris_together.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

using testing::Draws;

constexpr std::size_t kMost = 128;

// Games of one setup, twice: together and one by one.
template <typename Record>
class Twice {
 public:
  Twice(const TetrisSetup& setup, bool iid) : setup_(setup), iid_(iid) {
    for (std::size_t i = 0; i < kMost; ++i) Begin(i);
  }

  // One action of each of n games, from game `first` on.
  void Step(std::size_t first, std::size_t n, Draws& draws) {
    std::vector<std::int32_t> actions(n);
    for (auto& action : actions) action = draws.Below(kTetrisActions);
    // Lanes that begin may be given any number: the lowest three bits count.
    std::vector<std::int32_t> given = actions;
    for (auto& action : given) action += kTetrisActions * (draws.Below(3) - 1);
    TetrisStepTogether(n, together_.data() + first, together_pieces_.data() + first, given.data(),
                       setup_.reward, outcomes_);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = first + i;
      const LaneOutcome alone = ForRow(
          TetrisStep(CompactOf(alone_[at]), actions[i], alone_pieces_[at], ColoursOf(alone_[at])),
          setup_.reward);
      const std::string where = "game " + std::to_string(at) + ", " + std::to_string(n) +
                                " together, action " + std::to_string(actions[i]);
      ASSERT_EQ(std::memcmp(&alone_[at], &together_[at], sizeof(Record)), 0) << where;
      ASSERT_EQ(alone_pieces_[at].drawn, together_pieces_[at].drawn) << where;
      ASSERT_EQ(alone_pieces_[at].bag, together_pieces_[at].bag) << where;
      ASSERT_EQ(alone.reward, outcomes_.reward[i]) << where;
      ASSERT_EQ(alone.lines, outcomes_.lines[i]) << where;
      ASSERT_EQ(alone.terminated ? 1U : 0U, outcomes_.terminated[i]) << where;
      lines += alone.lines;
      ended += alone.terminated ? 1 : 0;
      if (alone.terminated) Begin(at);
    }
  }

  std::uint64_t lines = 0, ended = 0;

 private:
  void Begin(std::size_t at) {
    alone_pieces_[at] = PhiloxPieces::Of(3, token_++, iid_);
    TetrisReset(CompactOf(alone_[at]), setup_, alone_pieces_[at], ColoursOf(alone_[at]));
    // Every second game has two rows to which four cells are missing: random play clears some.
    constexpr std::uint16_t kMissing = 0b1111 << (kTetrisFieldShift + 3);
    for (int row = kTetrisRows - 2; row < kTetrisRows && at % 2 == 1; ++row) {
      CompactOf(alone_[at]).row[row] = kTetrisFullRow & ~kMissing;
    }
    together_[at] = alone_[at];
    together_pieces_[at] = alone_pieces_[at];
  }

  const TetrisSetup setup_;
  const bool iid_;
  std::uint64_t token_ = 0;
  std::vector<Record> alone_ = std::vector<Record>(kMost);
  std::vector<Record> together_ = std::vector<Record>(kMost);
  std::vector<PhiloxPieces> alone_pieces_ = std::vector<PhiloxPieces>(kMost);
  std::vector<PhiloxPieces> together_pieces_ = std::vector<PhiloxPieces>(kMost);
  LaneOutcomes<kMost> outcomes_;
};

template <typename Record>
class TetrisTogetherTest : public ::testing::Test {};
using Records = ::testing::Types<TetrisRecord, ColourRecord>;
TYPED_TEST_SUITE(TetrisTogetherTest, Records);

TYPED_TEST(TetrisTogetherTest, GamesPlayedTogetherEqualThoseOfOneAfterTheOther) {
  Draws draws(11);
  std::uint64_t lines = 0, ended = 0;
  for (const int rows : {kTetrisFewestRows, 10, kTetrisRows}) {
    for (int queue = 0; queue <= kTetrisMaxQueue; ++queue) {
      const TetrisReward reward = queue % 2 == 0 ? TetrisReward::kSquares : TetrisReward::kLines;
      Twice<TypeParam> games({.queue_size = queue, .rows = rows, .reward = reward}, queue % 3 == 0);
      for (int step = 0; step < 300; ++step) {
        ASSERT_NO_FATAL_FAILURE(games.Step(0, kMost, draws)) << rows << " rows, step " << step;
      }
      lines += games.lines;
      ended += games.ended;
    }
  }
  EXPECT_GT(lines, 100U);  // random play clears few
  EXPECT_GT(ended, 1000U);
}

TYPED_TEST(TetrisTogetherTest, AnyNumberOfNeighboursMayStepFromAnyGameOn) {
  Draws draws(12);
  Twice<TypeParam> games({.queue_size = 4}, false);
  for (std::size_t n = 0; n <= kMost; ++n) {
    const auto first = static_cast<std::size_t>(draws.Below(static_cast<int>(kMost - n) + 1));
    for (int step = 0; step < 4; ++step) ASSERT_NO_FATAL_FAILURE(games.Step(first, n, draws));
  }
}

}  // namespace
}  // namespace tetrion
