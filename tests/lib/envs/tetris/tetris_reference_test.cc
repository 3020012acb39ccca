#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/views.h"
#include "tests/support/envs_driver.h"
#include "tests/support/reference_tetris.h"

namespace tetrion {
namespace {

using testing::Draws;
using testing::ReferenceTetris;

// The bit-row rules and the cell-array reference side by side on the same pieces.
class Pair {
 public:
  Pair(std::uint64_t token, int queue_size, bool iid)
      : pieces_(PhiloxPieces::Of(77, token, iid)),
        reference_pieces_(pieces_),
        reference(queue_size, [this] { return reference_pieces_.Next(); }) {
    TetrisReset(record, {queue_size}, pieces_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  // Plays the action on both; returns whether the game is over.
  bool Step(int action) {
    return Same(TetrisStep(record, action, pieces_), reference.Step(action));
  }
  bool Place(int action, bool noop) {
    return Same(PlacementStep(record, action, noop, pieces_), reference.Place(action, noop));
  }

  void ExpectSameState() const {
    int cells = 0;
    for (int r = 0; r < 20; ++r) {
      for (int c = 0; c < 10; ++c) {
        const bool locked =
            reference.board()[static_cast<std::size_t>(r)][static_cast<std::size_t>(c + 4)] != 0;
        ASSERT_EQ((FieldRow(record, r) >> c & 1U) != 0, locked) << r << "," << c;
        cells += locked;
      }
    }
    ASSERT_EQ(cells, static_cast<int>(4 * record.pieces - 10 * record.lines));
    const TetrisPiece piece = UnpackActive(record.active);
    ASSERT_EQ(piece.id, reference.id());
    ASSERT_EQ(piece.x, reference.x());
    ASSERT_EQ(piece.y, reference.y());
    ExpectSameBox(piece.id, piece.rotation, reference.matrix());
    ASSERT_EQ(HasSwapped(record), reference.swapped());
    ASSERT_EQ(HolderId(record) == kTetrisNoPiece, reference.held().empty());
    if (!reference.held().empty())
      ExpectSameBox(HolderId(record), HolderRotation(record), reference.held());
    ASSERT_EQ(static_cast<std::size_t>(QueueSize(record)), reference.queue().size());
    for (int slot = 0; slot < QueueSize(record); ++slot) {
      ASSERT_EQ(QueueSlot(record, slot), reference.queue()[static_cast<std::size_t>(slot)]);
    }
  }

 private:
  static void ExpectSameBox(int id, int rotation, const ReferenceTetris::Matrix& matrix) {
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      for (std::size_t j = 0; j < matrix.size(); ++j) {
        ASSERT_EQ(static_cast<int>(PieceRows(id, rotation) >> (16 * i + j) & 1), matrix[i][j]);
      }
    }
  }

  bool Same(const TetrisOutcome& ours, const testing::ReferenceStep& theirs) {
    EXPECT_EQ(ours.reward, theirs.reward);
    EXPECT_EQ(ours.lines, theirs.lines);
    EXPECT_EQ(ours.illegal, theirs.illegal);
    EXPECT_EQ(ours.terminated, theirs.terminated);
    return ours.terminated || theirs.terminated;
  }

  PhiloxPieces pieces_, reference_pieces_;

 public:
  TetrisRecord record = {};
  ReferenceTetris reference;
};

TEST(TetrisReferenceTest, RandomGamesAgreeStepForStep) {
  Draws draws(1);
  for (std::uint64_t token = 0; token < 400; ++token) {
    Pair pair(token, 1 + static_cast<int>(token % 7), token % 3 == 0);
    for (bool over = false; !over;) {
      over = pair.Step(draws.Below(8));
      ASSERT_NO_FATAL_FAILURE(pair.ExpectSameState());
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Picks the legal placement with the fewest holes and lowest stack, so that many rows clear.
int PackingChoice(const TetrisRecord& record) {
  static std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(7)));
  ExpandAfterstates(reinterpret_cast<const std::byte*>(&record), 1, 7, view.data());
  int best = 0;
  float best_score = 1e9F;
  for (int action = 0; action < kPlacementActions; ++action) {
    if ((PlacementMask(record) >> action & 1) == 0) continue;
    const float* row = &view[static_cast<std::size_t>(action * AfterstatesLayout::kRowFloats)];
    const float score = 8 * row[11] + row[10] + row[12] + row[14] - row[13] + 100 * row[15];
    if (score >= best_score) continue;
    best_score = score;
    best = action;
  }
  return best;
}

TEST(TetrisReferenceTest, PackingPlacementsAgreeAndClearManyRows) {
  Draws draws(2);
  unsigned lines = 0;
  for (std::uint64_t token = 0; token < 60; ++token) {
    Pair pair(token, 1 + static_cast<int>(token % 7), token % 2 == 0);
    bool over = false;
    for (int step = 0; step < 150 && !over; ++step) {
      over = pair.Place(draws.Below(10) == 0 ? draws.Below(40) : PackingChoice(pair.record), true);
      ASSERT_NO_FATAL_FAILURE(pair.ExpectSameState());
      ASSERT_FALSE(HasFailure());
    }
    lines += pair.record.lines;
  }
  EXPECT_GT(lines, 1000U);
}

TEST(TetrisReferenceTest, MaskEqualsBruteForceLegality) {
  Draws draws(3);
  for (std::uint64_t token = 0; token < 100; ++token) {
    Pair pair(token, 4, false);
    for (bool over = false; !over;) {
      for (int action = 0; action < kPlacementActions; ++action) {
        ASSERT_EQ((PlacementMask(pair.record) >> action & 1) != 0, pair.reference.Legal(action));
      }
      over = pair.Place(draws.Below(40), true);
    }
  }
}

// The 13 features, cell by cell, unscaled.
std::vector<int> SlowFeatures(const ReferenceTetris::Board& board) {
  std::vector<int> features(13, 0);
  for (std::size_t c = 0; c < 10; ++c) {
    bool seen = false;
    for (std::size_t r = 0; r < 20; ++r) {
      if (board[r][c + 4] != 0 && !seen) features[c] = 20 - static_cast<int>(r);
      seen = seen || board[r][c + 4] != 0;
      if (seen && board[r][c + 4] == 0) ++features[11];
    }
    features[10] = std::max(features[10], features[c]);
    if (c > 0) features[12] += std::abs(features[c] - features[c - 1]);
  }
  return features;
}

// Compares row `action` of the view with the reference's board after it.
void ExpectRow(const Pair& pair, int action, const float* row) {
  if (!pair.reference.Legal(action)) {
    for (int i = 0; i < 16; ++i) ASSERT_EQ(row[i], 0.0F);
    return;
  }
  ReferenceTetris::Board board;
  int lines = 0;
  std::vector<int> expected(13, 0);
  if (pair.reference.After(action, &board, &lines)) expected = SlowFeatures(board);
  const float scale[13] = {20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 50};
  for (std::size_t i = 0; i < 13; ++i) {
    ASSERT_FLOAT_EQ(row[i] * scale[i], static_cast<float>(expected[i]))
        << "action " << action << " #" << i;
  }
  ASSERT_FLOAT_EQ(row[13] * 4, static_cast<float>(lines));
  TetrisRecord played = pair.record;
  PhiloxPieces any = PhiloxPieces::Of(0, 0, false);
  const TetrisOutcome outcome = PlacementStep(played, action, false, any);
  ASSERT_EQ(row[15], outcome.terminated ? 1.0F : 0.0F) << action;
}

TEST(TetrisReferenceTest, AfterstatesAreTheFieldsThatPlacementsLeave) {
  Draws draws(4);
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(7)));
  for (std::uint64_t token = 0; token < 120; ++token) {
    Pair pair(token, 7, token % 2 == 0);
    bool over = false;
    for (int step = 0; step < 60 && !over; ++step) {
      ExpandAfterstates(reinterpret_cast<const std::byte*>(&pair.record), 1, 7, view.data());
      for (int action = 0; action < kPlacementActions; ++action) {
        ASSERT_NO_FATAL_FAILURE(
            ExpectRow(pair, action, &view[static_cast<std::size_t>(16 * action)]));
      }
      const bool pack = token % 3 != 0;
      over = pair.Place(pack ? PackingChoice(pair.record) : draws.Below(40), true);
    }
  }
}

}  // namespace
}  // namespace tetrion
