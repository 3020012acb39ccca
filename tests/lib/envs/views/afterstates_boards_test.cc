#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/views.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

using Layout = AfterstatesBoardsLayout;
constexpr int kQueue = 2;

std::vector<float> ViewOf(const TetrisRecord& record) {
  std::vector<float> view(static_cast<std::size_t>(Layout::Floats(kQueue)));
  ExpandAfterstatesBoards(reinterpret_cast<const std::byte*>(&record), 1, kQueue, view.data());
  return view;
}

// The ten columns of a field, cell by cell.
std::vector<float> ColumnsOf(const TetrisRecord& field) {
  std::vector<float> columns;
  for (int c = 0; c < kTetrisColumns; ++c) {
    double cells = 0;
    for (int r = TopRow(field); r < kTetrisRows; ++r) {
      if ((field.row[r] >> (3 + c) & 1) != 0) cells += std::pow(2.0, kTetrisRows - 1 - r);
    }
    columns.push_back(static_cast<float>(cells));
  }
  return columns;
}

// Row `action` of the view against the field that the rules leave and what they say of the game.
void ExpectRow(const TetrisRecord& record, int action, const float* row, const float* plain) {
  TetrisRecord played = record;
  PhiloxPieces any = PhiloxPieces::Of(0, 0, false);
  const TetrisOutcome outcome = PlacementStep(played, action, false, any);
  const std::vector<float> none(kTetrisColumns, 0.0F);
  if (outcome.illegal) {
    ASSERT_TRUE(std::equal(none.begin(), none.end(), row)) << action;
    ASSERT_EQ(row[Layout::kLines] + row[Layout::kEnds], 0.0F) << action;
    return;
  }
  ASSERT_EQ(row[Layout::kLines], plain[AfterstatesLayout::kLines]) << action;
  ASSERT_EQ(row[Layout::kEnds], plain[AfterstatesLayout::kEnds]) << action;
  // A piece that finds no room or stays above the field leaves nothing to look at.
  if (std::all_of(plain, plain + AfterstatesLayout::kEnds, [](float x) { return x == 0; })) {
    ASSERT_TRUE(std::equal(none.begin(), none.end(), row)) << action;
    ASSERT_TRUE(outcome.terminated) << action;
    return;
  }
  // What collides at its top and not a row lower shows a field that the rules never reach.
  if (played.pieces != record.pieces + 1) return;
  const std::vector<float> columns = ColumnsOf(played);
  ASSERT_TRUE(std::equal(columns.begin(), columns.end(), row)) << action;
}

// Games on 5 to 20 rows, of pieces inside the field and above it.
TEST(AfterstatesBoardsTest, RowsAreTheColumnsOfTheFieldThatPlacementsLeave) {
  testing::Draws draws(31);
  std::vector<float> plain(static_cast<std::size_t>(AfterstatesLayout::Floats(kQueue)));
  unsigned lines = 0;
  for (std::uint64_t token = 0; token < 160; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(5, token, true);
    TetrisRecord record;
    const int rows = token % 2 == 0 ? kTetrisRows : 5 + static_cast<int>(token % 16);
    TetrisReset(record, {kQueue, rows, token % 3 == 0}, pieces);
    bool over = false;
    for (int step = 0; step < 40 && !over; ++step) {
      ExpandAfterstates(reinterpret_cast<const std::byte*>(&record), 1, kQueue, plain.data());
      const std::vector<float> view = ViewOf(record);
      int best = -1;
      for (int action = 0; action < kPlacementActions; ++action) {
        const float* of_plain = &plain[static_cast<std::size_t>(action * 16)];
        ASSERT_NO_FATAL_FAILURE(
            ExpectRow(record, action, &view[static_cast<std::size_t>(action * Layout::kRowFloats)],
                      of_plain));
        const auto score = [&](int a) {
          const float* row = &plain[static_cast<std::size_t>(a * 16)];
          return 8 * row[11] + row[12] + row[14];
        };
        const bool legal = (PlacementMask(record) >> action & 1) != 0;
        if (legal && (best < 0 || score(action) < score(best))) best = action;
      }
      const std::vector<float> present = ColumnsOf(record);
      ASSERT_TRUE(std::equal(present.begin(), present.end(), &view[Layout::kPresent]));
      ASSERT_EQ(std::memcmp(&view[Layout::kActiveId], &plain[AfterstatesLayout::kActiveId],
                            (7 + 7 * kQueue) * sizeof(float)),
                0);
      over = PlacementStep(record, draws.Below(8) == 0 ? draws.Below(40) : best, true, pieces)
                 .terminated;
    }
    lines += record.lines;
  }
  EXPECT_GT(lines, 500U);
}

// Rings are not trusted: any bytes give whole numbers of 20 bits inside the view's memory.
TEST(AfterstatesBoardsTest, ArbitraryBytesStayInsideTheViewAndAreColumns) {
  testing::Draws draws(21);
  for (int i = 0; i < 2000; ++i) {
    std::uint32_t words[16];
    for (auto& word : words) word = i == 0 ? 0 : i == 1 ? 0xFFFFFFFF : draws.Word();
    const auto floats = static_cast<std::size_t>(Layout::Floats(1 + i % 7));
    std::vector<float> view(floats + 1, 42.0F);
    ExpandAfterstatesBoards(reinterpret_cast<const std::byte*>(words), 1, 1 + i % 7, view.data());
    ASSERT_EQ(view[floats], 42.0F);
    for (std::size_t at = 0; at < floats; ++at) {
      ASSERT_GE(view[at], 0.0F);
      ASSERT_LT(view[at], static_cast<float>(1 << kTetrisRows));
    }
  }
}

}  // namespace
}  // namespace tetrion
