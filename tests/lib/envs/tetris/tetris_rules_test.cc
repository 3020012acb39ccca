#include "lib/envs/tetris/tetris_rules.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

constexpr int kI = 0, kO = 1, kT = 2, kL = 6;

// A game over a given piece sequence.
struct Game {
  explicit Game(std::vector<std::uint8_t> sequence, const TetrisSetup& setup = {1})
      : ids(std::move(sequence)) {
    pieces = {ids.data(), static_cast<std::uint32_t>(ids.size()), 0};
    TetrisReset(record, setup, pieces);
  }
  TetrisOutcome Step(int action) { return TetrisStep(record, action, pieces); }
  TetrisOutcome Place(int action) { return PlacementStep(record, action, false, pieces); }
  TetrisPiece active() const { return UnpackActive(record.active); }

  std::vector<std::uint8_t> ids;
  SequencePieces pieces;
  TetrisRecord record = {};
};

// The box of an oriented piece as text, rows separated by '/'.
std::string Box(int id, int rotation) {
  std::string text;
  for (int i = 0; i < PieceSize(id); ++i) {
    for (int j = 0; j < PieceSize(id); ++j) {
      text += (PieceRows(id, rotation) >> (16 * i + j) & 1) != 0 ? '1' : '0';
    }
    text += '/';
  }
  return text;
}

int Cells(const TetrisRecord& record) {
  int cells = 0;
  for (int r = 0; r < kTetrisRows; ++r) cells += std::popcount(FieldRow(record, r));
  return cells;
}

TEST(TetrisRulesTest, PiecesStartAsTheListedMatrices) {
  EXPECT_EQ(Box(0, 0), "0000/1111/0000/0000/");
  EXPECT_EQ(Box(1, 0), "11/11/");
  EXPECT_EQ(Box(2, 0), "010/111/000/");
  EXPECT_EQ(Box(3, 0), "011/110/000/");
  EXPECT_EQ(Box(4, 0), "110/011/000/");
  EXPECT_EQ(Box(5, 0), "100/111/000/");
  EXPECT_EQ(Box(6, 0), "001/111/000/");
}

TEST(TetrisRulesTest, ClockwiseTurnsAsNumpyRot90DoesAndFourTurnsAreNone) {
  EXPECT_EQ(Box(kI, 1), "0100/0100/0100/0100/");
  EXPECT_EQ(Box(kI, 2), "0000/0000/1111/0000/");
  EXPECT_EQ(Box(kI, 3), "0010/0010/0010/0010/");
  EXPECT_EQ(Box(kL, 1), "110/010/010/");
  EXPECT_EQ(Box(kO, 3), "11/11/");
  Game game({kT});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(game.active().rotation, i);
    game.Step(kTetrisClockwise);
  }
  EXPECT_EQ(game.active().rotation, 0);
  game.Step(kTetrisCounterclockwise);
  EXPECT_EQ(game.active().rotation, 3);
}

TEST(TetrisRulesTest, SpawnColumnsAreThePackages) {
  EXPECT_EQ(Game({kI}).active().x, 7);
  EXPECT_EQ(Game({kO}).active().x, 8);
  EXPECT_EQ(Game({kT}).active().x, 8);
  EXPECT_EQ(Game({kT}).active().y, 0);
}

TEST(TetrisRulesTest, AGameOnTenRowsIsPlayedOnTheLowestTen) {
  Game game({kO}, {1, 10});
  EXPECT_EQ(game.active().y, 10);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(game.Step(kTetrisNoop).reward, 0);
  EXPECT_EQ(game.active().y, 18);
  EXPECT_EQ(game.Step(kTetrisNoop).reward, 1);  // the ninth locks it
  EXPECT_EQ(game.active().y, 10);
  for (int piece = 0; piece < 3; ++piece) EXPECT_FALSE(game.Step(kTetrisHardDrop).terminated);
  // Five of them fill ten rows, so that the next one finds no room.
  EXPECT_TRUE(game.Step(kTetrisHardDrop).terminated);
  EXPECT_EQ(FieldRow(game.record, 10), 0b0000110000U);
  EXPECT_EQ(FieldRow(game.record, 9), 0U);
}

TEST(TetrisRulesTest, ASwappedPieceComesBackAtTheTopRow) {
  Game game({kO, kT, kL}, {1, 10});
  game.Step(kTetrisSwap);  // takes the queue's front
  EXPECT_EQ(game.active().id, kT);
  EXPECT_EQ(game.active().y, 11);  // the top row, and gravity
  game.Step(kTetrisHardDrop);
  game.Step(kTetrisSwap);  // takes what is held
  EXPECT_EQ(game.active().id, kO);
  EXPECT_EQ(game.active().y, 11);
}

TEST(TetrisRulesTest, DownFallsTwoRowsAndEverythingElseFallsOne) {
  Game game({kT});
  game.Step(kTetrisDown);
  EXPECT_EQ(game.active().y, 2);
  game.Step(kTetrisNoop);
  EXPECT_EQ(game.active().y, 3);
  game.Step(kTetrisLeft);
  EXPECT_EQ(game.active().y, 4);
  EXPECT_EQ(game.active().x, 7);
}

TEST(TetrisRulesTest, WallsStopMovesAndRotationsWithoutKicks) {
  Game game({kI});
  game.Step(kTetrisClockwise);  // vertical in box column 1
  for (int i = 0; i < 12; ++i) game.Step(kTetrisLeft);
  EXPECT_EQ(game.active().x, 3);  // cells in array column 4
  game.Step(kTetrisClockwise);
  EXPECT_EQ(game.active().rotation, 1);
}

TEST(TetrisRulesTest, HardDropLocksOnTheFloorAndEarnsOne) {
  Game game({kO, kI});
  const TetrisOutcome outcome = game.Step(kTetrisHardDrop);
  EXPECT_EQ(outcome.reward, 1);
  EXPECT_FALSE(outcome.terminated);
  EXPECT_EQ(FieldRow(game.record, 19), 0b0000110000U);
  EXPECT_EQ(FieldRow(game.record, 18), 0b0000110000U);
  EXPECT_EQ(game.active().id, kI);
  EXPECT_EQ(game.active().y, 0);
  EXPECT_EQ(game.record.pieces, 1U);
}

TEST(TetrisRulesTest, GravityLocksAPieceThatCannotFall) {
  Game game({kO});
  for (int i = 0; i < 18; ++i) EXPECT_EQ(game.Step(kTetrisNoop).reward, 0);
  EXPECT_EQ(game.active().y, 18);
  EXPECT_EQ(game.Step(kTetrisNoop).reward, 1);
  EXPECT_EQ(game.active().y, 0);
}

TEST(TetrisRulesTest, LinesPayTheirSquareTimesTen) {
  Game two({kO});
  for (const int column : {1, 3, 5, 7}) EXPECT_EQ(two.Place(column * 4).reward, 1);
  const TetrisOutcome outcome = two.Place(9 * 4);
  EXPECT_EQ(outcome.lines, 2);
  EXPECT_EQ(outcome.reward, 41);
  EXPECT_EQ(Cells(two.record), 0);
  EXPECT_EQ(two.record.lines, 2U);

  Game four({kI});
  for (int column = 0; column < 9; ++column) EXPECT_EQ(four.Place((column + 1) * 4 + 1).lines, 0);
  EXPECT_EQ(four.Place(9 * 4 + 3).reward, 161);  // vertical in box column 2: array column 13
}

TEST(TetrisRulesTest, RowsAboveAClearedRowMoveDown) {
  Game game({kI, kI, kO, kT});
  game.Place(2 * 4);
  game.Place(6 * 4);
  game.record.row[18] = static_cast<std::uint16_t>(kTetrisEmptyRow | 1U << 3);
  const TetrisOutcome outcome = game.Place(9 * 4);  // O fills columns 8 and 9 of the floor row
  EXPECT_EQ(outcome.lines, 1);
  EXPECT_EQ(FieldRow(game.record, 19), 0b1100000001U);
  EXPECT_EQ(FieldRow(game.record, 18), 0U);
}

TEST(TetrisRulesTest, SwapHoldsTheOrientationAndWorksOncePerPiece) {
  Game game({kT, kI, kO});
  game.Step(kTetrisClockwise);
  game.Step(kTetrisSwap);
  EXPECT_EQ(game.active().id, kI);
  EXPECT_EQ(HolderId(game.record), kT);
  EXPECT_EQ(HolderRotation(game.record), 1);
  EXPECT_TRUE(HasSwapped(game.record));
  game.Step(kTetrisSwap);
  EXPECT_EQ(game.active().id, kI);
  game.Step(kTetrisHardDrop);
  EXPECT_FALSE(HasSwapped(game.record));
  game.Step(kTetrisSwap);
  EXPECT_EQ(game.active().id, kT);
  EXPECT_EQ(game.active().rotation, 1);
  EXPECT_EQ(game.active().y, 1);
  EXPECT_EQ(HolderId(game.record), kO);
}

TEST(TetrisRulesTest, GameOverAtTheSpawnLosesRewardButReportsLines) {
  Game game({kI, kI});
  for (int r = 1; r < 20; ++r)
    game.record.row[r] = static_cast<std::uint16_t>(0xFFFFU & ~(1U << (3 + r % 9)));
  game.record.row[1] =
      static_cast<std::uint16_t>(0xFFFFU & ~(0xFU << 6));  // holes under the spawned I
  const TetrisOutcome outcome = game.Step(kTetrisHardDrop);
  EXPECT_EQ(outcome.lines, 1);
  EXPECT_FALSE(outcome.terminated);  // the cleared row makes room again
  game.record.row[1] = static_cast<std::uint16_t>(0xFFFFU & ~(0xFU << 6));
  game.record.row[0] = static_cast<std::uint16_t>(kTetrisEmptyRow | 1U << 7);
  const TetrisOutcome last = game.Step(kTetrisHardDrop);
  EXPECT_EQ(last.lines, 1);
  EXPECT_TRUE(last.terminated);
  EXPECT_EQ(last.reward, 0);
  EXPECT_EQ(game.record.lines, 2U);
}

TEST(TetrisRulesTest, ACollidingPieceEndsTheGameWithNothingLocked) {
  Game game({kO, kO, kT});
  game.record.row[0] |= 1U << 8;
  const int before = Cells(game.record);
  const TetrisOutcome outcome = game.Step(kTetrisHardDrop);
  EXPECT_TRUE(outcome.terminated);
  EXPECT_EQ(outcome.reward, 0);
  EXPECT_EQ(Cells(game.record), before);
  EXPECT_EQ(game.record.pieces, 0U);
}

TEST(TetrisRulesTest, PlacementMaskCountsTheOrientationsOfEachPiece) {
  const int expected[kTetrisPieces] = {7 + 9 + 7 + 10, 4 * 9, 34, 34, 34, 34, 34};
  for (std::uint8_t id = 0; id < kTetrisPieces; ++id) {
    EXPECT_EQ(std::popcount(PlacementMask(Game({id}).record)), expected[id]) << int{id};
  }
}

TEST(TetrisRulesTest, IllegalPlacementEndsTheGameOrIsANoop) {
  Game game({kO});
  const int illegal = 0;  // the O over column 0 reaches into the wall
  ASSERT_EQ(PlacementMask(game.record) >> illegal & 1, 0U);
  const TetrisRecord before = game.record;
  const TetrisOutcome end = game.Place(illegal);
  EXPECT_TRUE(end.terminated);
  EXPECT_TRUE(end.illegal);
  EXPECT_EQ(game.record.active, before.active);
  const TetrisOutcome noop = PlacementStep(game.record, illegal, true, game.pieces);
  EXPECT_FALSE(noop.terminated);
  EXPECT_TRUE(noop.illegal);
  EXPECT_EQ(game.active().y, 1);
}

// 7-bags: every bag holds each piece once, whatever the seed; the k-th piece follows from (seed,
// token, k).
TEST(TetrisPiecesTest, EveryBagHoldsEachPieceOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    PhiloxPieces pieces = PhiloxPieces::Of(seed, seed * 977, false);
    for (int bag = 0; bag < 5; ++bag) {
      unsigned seen = 0;
      for (int i = 0; i < 7; ++i) seen |= 1U << pieces.Next();
      ASSERT_EQ(seen, 0x7FU) << seed;
    }
  }
}

TEST(TetrisPiecesTest, BagIsTheDocumentedFisherYatesShuffle) {
  const std::uint64_t seed = 0x123456789ABCDEFULL, token = 1ULL << 40;
  PhiloxPieces pieces = PhiloxPieces::Of(seed, token, false);
  for (std::uint32_t bag = 0; bag < 50; ++bag) {
    std::vector<std::uint32_t> words;
    for (const std::uint32_t block : {2 * bag, 2 * bag + 1}) {
      const PhiloxBlock drawn = PhiloxDraw(seed, token, block, PhiloxPurpose::kPieces);
      words.insert(words.end(), drawn.word, drawn.word + 4);
    }
    int order[7] = {0, 1, 2, 3, 4, 5, 6};
    for (std::uint64_t j = 6; j >= 1; --j) std::swap(order[j], order[words[6 - j] * (j + 1) >> 32]);
    for (const int id : order) ASSERT_EQ(pieces.Next(), id) << bag;
  }
}

TEST(TetrisPiecesTest, BagFromElsewhereHoldsAtMostSevenPieces) {
  const auto is_valid = [](std::uint32_t bag) {
    return PhiloxPieces{.seed = 1, .token_id = 2, .drawn = 1, .bag = bag}.IsValid();
  };
  EXPECT_TRUE(is_valid(PhiloxPieces::kIid));
  EXPECT_TRUE(is_valid(PhiloxPieces::kEmptyBag));
  EXPECT_TRUE(is_valid(016543210U));  // octal: a 1, then the pieces
  EXPECT_TRUE(is_valid(013U));
  EXPECT_FALSE(is_valid(0106543210U)) << "eight";
  EXPECT_FALSE(is_valid(017U)) << "a piece that there is not";
  EXPECT_FALSE(is_valid(023U)) << "not ended by a 1";
}

TEST(TetrisPiecesTest, IidPiecesAreUniformAndRepeatable) {
  PhiloxPieces pieces = PhiloxPieces::Of(5, 6, true), again = pieces;
  int count[7] = {};
  for (int i = 0; i < 70000; ++i) {
    const int id = pieces.Next();
    ASSERT_EQ(id, again.Next());
    ++count[id];
  }
  for (const int n : count) EXPECT_NEAR(n, 10000, 400);  // 4.3 standard deviations
}

TEST(TetrisPiecesTest, SequenceRepeatsWhenItEnds) {
  const std::uint8_t ids[] = {3, 1, 4};
  SequencePieces pieces = {ids, 3, 0};
  for (const int id : {3, 1, 4, 3, 1}) EXPECT_EQ(pieces.Next(), id);
}

}  // namespace
}  // namespace tetrion
