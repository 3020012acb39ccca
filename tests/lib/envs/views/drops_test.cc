#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/views.h"
#include "tests/lib/envs/greedy_placement.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

constexpr int kLinesColumn = 13, kLandingColumn = 14, kEndsColumn = 15;

std::vector<float> DropsOf(const TetrisRecord& record, int queue_size) {
  std::vector<float> view(static_cast<std::size_t>(DropsLayout::Floats(queue_size)), 42.0F);
  ExpandDrops(reinterpret_cast<const std::byte*>(&record), 1, queue_size, view.data());
  return view;
}

// The 13 numbers of a field, cell by cell; the top row that is played on counts as empty.
std::vector<float> FieldNumbersOf(const TetrisRecord& field) {
  std::vector<float> numbers;
  int height[kTetrisColumns] = {}, holes = 0, bumpiness = 0, highest = 0;
  for (int c = 0; c < kTetrisColumns; ++c) {
    for (int r = TopRow(field) + 1; r < kTetrisRows; ++r) {
      const bool full = (field.row[r] >> (3 + c) & 1) != 0;
      if (full && height[c] == 0) height[c] = kTetrisRows - r;
      if (!full && height[c] > 0) ++holes;
    }
    highest = std::max(highest, height[c]);
    if (c > 0) bumpiness += std::abs(height[c] - height[c - 1]);
    numbers.push_back(static_cast<float>(height[c]) / 20);
  }
  numbers.push_back(static_cast<float>(highest) / 20);
  numbers.push_back(static_cast<float>(holes) / 20);
  numbers.push_back(static_cast<float>(bumpiness) / 50);
  return numbers;
}

// What the rules leave of a game after an action and, unless that locked the piece, a hard drop.
struct Played {
  TetrisRecord record;
  int lines = 0;
  bool terminated = false, locks = false;
  bool next_known = false;  // whether the queue says which piece appears then
};

Played Play(const TetrisRecord& record, int action, PhiloxPieces pieces) {
  Played played = {record};
  const bool draws =
      action == kTetrisSwap && !HasSwapped(record) && HolderId(record) == kTetrisNoPiece;
  played.next_known = QueueSize(record) > (draws ? 1 : 0);
  TetrisOutcome outcome = TetrisStep(played.record, action, pieces);
  played.locks = outcome.terminated || played.record.pieces > record.pieces;
  if (!played.locks) outcome = TetrisStep(played.record, kTetrisHardDrop, pieces);
  played.lines = outcome.lines;
  played.terminated = outcome.terminated;
  return played;
}

void ExpectDropsRow(const TetrisRecord& record, int action, const PhiloxPieces& pieces,
                    const float* row) {
  for (int a = 0; a < kTetrisActions; ++a) {
    ASSERT_EQ(row[DropsLayout::kAction + a], a == action ? 1.0F : 0.0F);
  }
  const bool unknown = action == kTetrisSwap && !HasSwapped(record) &&
                       HolderId(record) == kTetrisNoPiece && QueueSize(record) == 0;
  const Played played = Play(record, action, pieces);
  const bool nothing_locked = played.record.pieces == record.pieces;
  ASSERT_EQ(row[DropsLayout::kLocks], played.locks && !unknown ? 1.0F : 0.0F);
  if (unknown || nothing_locked) {
    ASSERT_TRUE(std::all_of(row, row + kEndsColumn, [](float x) { return x == 0; }));
    ASSERT_EQ(row[kEndsColumn], unknown ? 0.0F : 1.0F);
    ASSERT_TRUE(unknown || played.terminated);
    return;
  }
  const std::vector<float> numbers = FieldNumbersOf(played.record);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_FLOAT_EQ(row[i], numbers[i]) << i;
  ASSERT_EQ(row[kLinesColumn], static_cast<float>(played.lines) / 4);
  const bool ends = played.next_known && played.terminated;
  ASSERT_EQ(row[kEndsColumn], ends ? 1.0F : 0.0F);
}

// A move towards the placement that GreedyPlacement takes, or the drop there.
int TowardsGreedy(const TetrisRecord& record) {
  const int placement = testing::GreedyPlacement(record);
  const TetrisPiece piece = UnpackActive(record.active);
  const int x = placement / 4 + 4 - PieceSize(piece.id) / 2;
  if (placement % 4 != 0) return kTetrisClockwise;
  return piece.x < x ? kTetrisRight : piece.x > x ? kTetrisLeft : kTetrisHardDrop;
}

// Games on 5 to 20 rows with 0 to 3 pieces in the preview, played well enough to clear rows.
TEST(DropsTest, RowsAreWhatTheRulesLeaveAfterAnActionAndADrop) {
  testing::Draws draws(77);
  unsigned lines = 0, swaps = 0, locks = 0, ends = 0;
  for (std::uint64_t token = 0; token < 160; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(5, token, token % 2 == 0);
    TetrisRecord record;
    const int queue = static_cast<int>(token % 4);
    TetrisReset(record, {queue, token % 3 == 0 ? 5 + static_cast<int>(token % 16) : kTetrisRows},
                pieces);
    for (int step = 0; step < 400; ++step) {
      const std::vector<float> view = DropsOf(record, queue);
      for (int action = 0; action < kTetrisActions; ++action) {
        const float* row = &view[static_cast<std::size_t>(action * DropsLayout::kRowFloats)];
        ASSERT_NO_FATAL_FAILURE(ExpectDropsRow(record, action, pieces, row))
            << "token " << token << " step " << step << " action " << action;
        ends += row[kEndsColumn] != 0 ? 1 : 0;
        locks += row[DropsLayout::kLocks] != 0 && action != kTetrisHardDrop ? 1 : 0;
      }
      const std::vector<float> numbers = FieldNumbersOf(record);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_FLOAT_EQ(view[DropsLayout::kPresent + i], numbers[i]);
      }
      const int action = draws.Below(6) == 0 ? draws.Below(kTetrisActions) : TowardsGreedy(record);
      swaps += action == kTetrisSwap && !HasSwapped(record) ? 1 : 0;
      if (TetrisStep(record, action, pieces).terminated) break;
    }
    lines += record.lines;
  }
  EXPECT_GT(lines, 100U);
  EXPECT_GT(swaps, 100U);
  EXPECT_GT(locks, 100U);
  EXPECT_GT(ends, 20U);
}

TEST(DropsTest, StateSaysPieceHolderAndQueueAtTheirPlaces) {
  static const std::uint8_t ids[] = {1, 0, 2, 3};
  SequencePieces pieces = {ids, 4, 0};
  TetrisRecord record;
  TetrisReset(record, {2}, pieces);
  EXPECT_EQ(DropsLayout::Floats(2), 8 * 25 + 45 + 14);
  record.active = PackActive({5, 3, 4, 10});
  record.holder = PackHolder(6, 1);
  record.flags |= kTetrisSwapped;
  const std::vector<float> view = DropsOf(record, 2);
  EXPECT_EQ(view[200 + 13 + 5], 1.0F);
  EXPECT_EQ(view[200 + 20 + 3], 1.0F);
  EXPECT_EQ(view[200 + 24 + 4 - 2], 1.0F);
  EXPECT_EQ(view[200 + 35], 10.0F / 20);
  EXPECT_EQ(view[200 + 36 + 6], 1.0F);
  EXPECT_EQ(view[200 + 44], 1.0F);
  EXPECT_EQ(view[200 + 45 + 0], 1.0F);      // I is next
  EXPECT_EQ(view[200 + 45 + 7 + 2], 1.0F);  // then T
  float sum = 0;
  for (std::size_t i = 200; i < view.size(); ++i) sum += view[i];
  EXPECT_EQ(sum, 7.5F);
}

// The O drops where it appears, over columns 4 and 5, or a column beside.
TEST(DropsTest, LandingRowAndHeightsOfAnOOnTwoRows) {
  static const std::uint8_t ids[] = {1, 1, 1};
  SequencePieces pieces = {ids, 3, 0};
  TetrisRecord record;
  TetrisReset(record, {1}, pieces);
  record.row[19] = record.row[18] = kTetrisFullRow & ~(1U << 3);  // column 0 is free
  const std::vector<float> view = DropsOf(record, 1);
  const float* drop = &view[kTetrisHardDrop * DropsLayout::kRowFloats];
  EXPECT_FLOAT_EQ(drop[kLandingColumn], 2.0F / 20);
  for (int c = 0; c < kTetrisColumns; ++c) {
    const float height = c == 0 ? 0.0F : c == 4 || c == 5 ? 4.0F : 2.0F;
    EXPECT_FLOAT_EQ(drop[c], height / 20) << c;
  }
  EXPECT_EQ(drop[DropsLayout::kLocks], 1.0F);
  const float* right = &view[kTetrisRight * DropsLayout::kRowFloats];
  EXPECT_FLOAT_EQ(right[4], 2.0F / 20);
  EXPECT_FLOAT_EQ(right[6], 4.0F / 20);
  EXPECT_EQ(right[DropsLayout::kLocks], 0.0F);
}

// Rings are not trusted: any bytes give numbers within the bounds of Python's space, in the view's
// memory.
TEST(DropsTest, ArbitraryBytesStayInsideTheViewAndItsBounds) {
  testing::Draws draws(21);
  for (int i = 0; i < 4000; ++i) {
    std::uint32_t words[16];
    for (auto& word : words) word = i == 0 ? 0 : i == 1 ? 0xFFFFFFFF : draws.Word();
    const int queue = i % 8;
    const auto floats = static_cast<std::size_t>(DropsLayout::Floats(queue));
    std::vector<float> view(floats + 1, 42.0F);
    ExpandDrops(reinterpret_cast<const std::byte*>(words), 1, queue, view.data());
    ASSERT_EQ(view[floats], 42.0F);
    for (std::size_t at = 0; at < floats; ++at) {
      ASSERT_GE(view[at], 0.0F);
      ASSERT_LE(view[at], 16.0F);
    }
  }
}

}  // namespace
}  // namespace tetrion
