#include "lib/envs/catch/catch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lib/frame/row_layout.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

TEST(CatchRulesTest, BallFallsForNineStepsAndThePaddleDecidesTheReward) {
  for (std::uint64_t token = 0; token < 50; ++token) {
    for (const bool caught : {false, true}) {
      CatchRecord state = CatchReset(3, token);
      EXPECT_EQ(state.ball_row, 0);
      EXPECT_EQ(state.paddle, 4);
      const int ball = state.ball_column;
      // To the ball, or to the edge that is farther from it.
      const int aim = caught ? ball : ball < 5 ? 8 : 0;
      for (int step = 1; step <= 9; ++step) {
        ASSERT_FALSE(CatchOver(state));
        const int action = 1 + (aim > state.paddle ? 1 : 0) - (aim < state.paddle ? 1 : 0);
        const int reward = CatchStep(state, action);
        EXPECT_EQ(reward, step < 9 ? 0 : caught ? 1 : -1);
        EXPECT_EQ(state.ball_row, step);
        EXPECT_EQ(state.ball_column, ball);
      }
      EXPECT_TRUE(CatchOver(state));
    }
  }
}

TEST(CatchRulesTest, EveryColumnIsDrawnAndTheEdgesHold) {
  std::set<int> columns;
  for (std::uint64_t token = 0; token < 200; ++token) {
    columns.insert(CatchReset(1, token).ball_column);
  }
  EXPECT_EQ(columns.size(), std::size_t{kCatchColumns});
  for (const int action : {0, 2}) {
    CatchRecord state = CatchReset(1, 0);
    for (int step = 0; step < 9; ++step) CatchStep(state, action);
    EXPECT_EQ(state.paddle, action == 0 ? 0 : kCatchColumns - 1);
  }
}

TEST(CatchViewTest, ShowsBallAndPaddleAndNothingOutsideTheBoard) {
  const CatchRecord records[] = {{2, 7, 1, {}}, {9, 3, 3, {}}, {255, 255, 255, {}}};
  std::vector<float> view(3 * kCatchCells);
  ExpandCatch(reinterpret_cast<const std::byte*>(records), 3, 0, view.data());
  for (int cell = 0; cell < kCatchCells; ++cell) {
    EXPECT_EQ(view[static_cast<std::size_t>(cell)], cell == 2 * 9 + 7 || cell == 9 * 9 + 1 ? 1 : -1)
        << cell;
    EXPECT_EQ(view[static_cast<std::size_t>(kCatchCells + cell)], cell == 9 * 9 + 3 ? 1 : -1);
    EXPECT_EQ(view[static_cast<std::size_t>(2 * kCatchCells + cell)], -1);
  }
}

TEST(CatchPictureTest, ShowsTheSameCells) {
  const std::string text = RenderCatchText({2, 7, 1, {}});
  EXPECT_EQ(text.size(), 10U * 10U);
  EXPECT_EQ(text[2 * 10 + 7], 'o');
  EXPECT_EQ(text[9 * 10 + 1], '=');
  EXPECT_EQ(std::count(text.begin(), text.end(), '.'), kCatchCells - 2);
  EXPECT_EQ(RenderCatchText({9, 3, 3, {}})[9 * 10 + 3], '@');

  const RgbSize size = CatchEntry().picture.size(0, 2);
  std::vector<std::uint8_t> picture(static_cast<std::size_t>(size.Bytes()));
  RenderCatchRgb({2, 7, 1, {}}, 2, picture.data());
  int red = 0, white = 0;
  for (std::size_t at = 0; at < picture.size(); at += 3) {
    red += picture[at] > 0 && picture[at + 1] == 0 ? 1 : 0;
    white += picture[at + 1] > 0 ? 1 : 0;
  }
  EXPECT_EQ(red, 4);
  EXPECT_EQ(white, 4);
  const auto ball = static_cast<std::size_t>(3 * (2 * 2 * size.width + 7 * 2));
  EXPECT_GT(picture[ball], 0);
}

TEST(CatchEnvTest, EpisodeEndsWithTheBallAndReportsItsReward) {
  testing::RowedEnv rows({.name = "catch", .seed = 2});
  rows.env->Reset(0, {7, 0, 10});
  rows.StepAll();
  rows.actions[0] = 1;
  int steps = 0;
  for (; (rows.row.flags[0] & kIsLast) == 0; ++steps) rows.StepAll();
  EXPECT_EQ(steps, 9);
  EXPECT_EQ(rows.row.flags[0], kIsLast | kTerminated);
  const auto& record = rows.RecordAt<CatchRecord>(0);
  EXPECT_EQ(rows.env->Episode(0).episode_return, record.ball_column == 4 ? 1.0F : -1.0F);
}

TEST(CatchEnvTest, StatesThatNoGameHasAreNotLoaded) {
  testing::RowedEnv rows({.name = "catch", .seed = 2});
  rows.env->Reset(0, {7, 0, 10});
  rows.StepAll();
  const std::vector<std::byte> saved = rows.env->Save(0);
  ASSERT_TRUE(rows.env->Load(0, saved, rows.row));
  // The game's record is the last eight bytes of what is saved.
  for (std::size_t at = saved.size() - sizeof(CatchRecord); at < saved.size(); ++at) {
    std::vector<std::byte> wrong = saved;
    wrong[at] = std::byte{200};
    EXPECT_FALSE(rows.env->Load(0, wrong, rows.row)) << at;
  }
}

TEST(CatchEnvTest, GameThatIsOverDoesNotGoOn) {
  testing::RowedEnv rows({.name = "catch", .seed = 2});
  rows.env->Reset(0, {7, 0, 10});
  rows.actions[0] = 1;
  std::vector<std::byte> before, saved;
  do {
    before = saved;
    rows.StepAll();
    saved = rows.env->Save(0);
  } while ((rows.row.flags[0] & kIsLast) == 0);
  EXPECT_TRUE(rows.env->Load(0, saved, rows.row));
  ASSERT_TRUE(rows.env->Load(0, before, rows.row));
  // The game's end in the account of an episode that goes on.
  std::copy_n(saved.end() - sizeof(CatchRecord), sizeof(CatchRecord),
              before.end() - sizeof(CatchRecord));
  EXPECT_FALSE(rows.env->Load(0, before, rows.row));
}

}  // namespace
}  // namespace tetrion
