#include "lib/envs/tetris/colour_record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/vec_env.h"
#include "tests/lib/envs/greedy_placement.h"
#include "tests/support/envs_driver.h"
#include "tests/support/reference_tetris.h"

namespace tetrion {
namespace {

using testing::Draws;
using testing::ReferenceTetris;

// Every colour is the reference's cell, and stands exactly where the occupancy bit does.
void ExpectColours(const ColourRecord& record, const ReferenceTetris& reference) {
  for (int r = 0; r < kTetrisRows; ++r) {
    for (int c = 0; c < kTetrisColumns; ++c) {
      const int cell = reference.board()[static_cast<std::size_t>(r)]
                                        [static_cast<std::size_t>(c + ReferenceTetris::kPadding)];
      ASSERT_EQ(ColourAt(record, r, c), cell) << r << ' ' << c;
      ASSERT_EQ((FieldRow(record.compact, r) >> c & 1) != 0, cell != 0) << r << ' ' << c;
      ASSERT_EQ(ColourRow(record, r) >> (4 * c) & 15, static_cast<std::uint64_t>(cell));
    }
  }
  for (const std::uint8_t byte : record.reserved) ASSERT_EQ(byte, 0);
}

TEST(ColourRecordTest, ColoursFollowTheReferenceThroughPlacementsAndClearedRows) {
  Draws draws(31);
  std::uint32_t lines = 0;
  for (std::uint64_t token = 0; token < 12; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(5, token, token % 3 == 0);
    PhiloxPieces same_pieces = pieces;
    ColourRecord record;
    std::memset(&record, 0xAB, sizeof(record));
    TetrisReset(record.compact, {4}, pieces, LockedColours(record));
    ReferenceTetris reference(4, [&same_pieces] { return same_pieces.Next(); });
    for (int i = 0; i < 250; ++i) {
      const int action = draws.Below(20) == 0 ? draws.Below(kPlacementActions)
                                              : testing::GreedyPlacement(record.compact);
      const TetrisOutcome outcome =
          PlacementStep(record.compact, action, true, pieces, LockedColours(record));
      (void)reference.Place(action, true);
      ASSERT_NO_FATAL_FAILURE(ExpectColours(record, reference)) << "token " << token << " " << i;
      if (outcome.terminated) break;
    }
    lines += record.compact.lines;
  }
  EXPECT_GT(lines, 300U);
}

TEST(ColourRecordTest, ColoursFollowTheReferenceThroughRandomActions) {
  Draws draws(32);
  for (std::uint64_t token = 0; token < 40; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(6, token, false);
    PhiloxPieces same_pieces = pieces;
    ColourRecord record;
    TetrisReset(record.compact, {1 + static_cast<int>(token % 7)}, pieces, LockedColours(record));
    ReferenceTetris reference(1 + static_cast<int>(token % 7),
                              [&same_pieces] { return same_pieces.Next(); });
    for (bool over = false; !over;) {
      const int action = draws.Below(kTetrisActions);
      over = TetrisStep(record.compact, action, pieces, LockedColours(record)).terminated;
      (void)reference.Step(action);
      ASSERT_NO_FATAL_FAILURE(ExpectColours(record, reference)) << "token " << token;
    }
  }
}

// Four rows of different colours, full but for column 9; a standing I clears them all at once.
TEST(ColourRecordTest, FourRowsClearedAtOnceLeaveWhatStoodAboveThem) {
  static const std::uint8_t ids[] = {0, 1};
  SequencePieces pieces = {ids, 2, 0};
  ColourRecord record;
  TetrisReset(record.compact, {1}, pieces, LockedColours(record));
  for (int r = 15; r < kTetrisRows; ++r) {
    for (int c = 0; c < (r == 15 ? 1 : 9); ++c) {
      record.compact.row[r] |= static_cast<std::uint16_t>(1U << (c + kTetrisFieldShift));
      record.colour[r][c / 2] |= static_cast<std::uint8_t>((r - 13) << (4 * (c & 1)));
    }
  }
  const TetrisOutcome outcome =
      PlacementStep(record.compact, 9 * 4 + 3, false, pieces, LockedColours(record));
  EXPECT_EQ(outcome.lines, 4);
  EXPECT_EQ(ColourAt(record, 19, 0), 2);
  record.colour[19][0] = 0;
  for (int r = 0; r < kTetrisRows; ++r) EXPECT_EQ(ColourRow(record, r), 0U) << r;
}

// An environment with colours is the environment without: same records, rewards, masks, ends.
class ColourEnvTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ColourEnvTest, CompactPartEqualsTheCompactEnvironment) {
  const EnvConfig config = {.name = GetParam(), .lanes = 5, .seed = 8, .illegal_is_noop = true};
  EnvConfig colour_config = config;
  colour_config.view = "flat";
  testing::RowedEnv plain(config), coloured(colour_config);
  ASSERT_EQ(coloured.env->spec().obs.record_bytes, sizeof(ColourRecord));
  Draws draws(33);
  std::uint64_t token = 0;
  for (int lane = 0; lane < 5; ++lane) {
    plain.env->Reset(lane, {token, 0, 90});
    coloured.env->Reset(lane, {token++, 0, 90});
  }
  for (int t = 0; t < 3000; ++t) {
    for (auto& action : plain.actions) action = draws.Below(plain.env->spec().action.count);
    coloured.actions = plain.actions;
    plain.StepAll();
    coloured.StepAll();
    for (int lane = 0; lane < 5; ++lane) {
      const auto& record = coloured.RecordAt<ColourRecord>(lane);
      ASSERT_EQ(std::memcmp(&plain.RecordAt<TetrisRecord>(lane), &record, sizeof(TetrisRecord)), 0);
      ASSERT_EQ(plain.row.reward[lane], coloured.row.reward[lane]);
      ASSERT_EQ(plain.row.flags[lane], coloured.row.flags[lane]);
      if (plain.row.mask != nullptr) {
        ASSERT_EQ(plain.row.mask[lane], coloured.row.mask[lane]);
      }
      for (int r = 0; r < kTetrisRows; ++r) {
        for (int c = 0; c < kTetrisColumns; ++c) {
          ASSERT_EQ(ColourAt(record, r, c) != 0, (FieldRow(record.compact, r) >> c & 1) != 0);
          ASSERT_LE(ColourAt(record, r, c), 8);
        }
      }
      if ((plain.row.flags[lane] & kIsLast) == 0) continue;
      plain.env->Reset(lane, {token, 0, 90});
      coloured.env->Reset(lane, {token++, 0, 90});
    }
  }
  EXPECT_GT(token, 100U);
}

INSTANTIATE_TEST_SUITE_P(Games, ColourEnvTest, ::testing::Values("tetris", "tetris-placement"));

}  // namespace
}  // namespace tetrion
