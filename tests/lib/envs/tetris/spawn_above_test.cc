// Games whose pieces appear above the field, held against a field of single cells that is four rows
// higher, and the views of their placements against what the placements then leave.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "lib/core/error.h"
#include "lib/envs/registry.h"
#include "lib/envs/tetris/colour_record.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/views.h"
#include "tests/support/envs_driver.h"
#include "tests/support/reference_tetris.h"

namespace tetrion {
namespace {

using testing::Draws;
using testing::ReferenceTetris;

// The slow and obvious game: cells, top row first; the first four rows are above the field.
class CellGame {
 public:
  explicit CellGame(int rows) : cell_(static_cast<std::size_t>(rows + kAbove)) {}

  struct Result {
    int lines;
    bool over;
  };
  Result Place(int id, int action) {
    ReferenceTetris::Matrix piece = ReferenceTetris::PieceMatrix(id);
    for (int i = 0; i < action % 4; ++i) piece = ReferenceTetris::TurnedLeft(piece);
    const int x = action / 4 - static_cast<int>(piece.size()) / 2;
    // Cells of the box that lie above the rows kept here are empty: no piece is higher than four.
    int y = 0;
    while (Fits(piece, y + 1, x)) ++y;
    ForCells(piece, [&](int i, int j) { At(y + i, x + j) = true; });
    Result result = {0, false};
    for (auto row = cell_.begin(); row != cell_.end(); ++row) {
      if (std::count(row->begin(), row->end(), false) > 0) continue;
      ++result.lines;
      std::rotate(cell_.begin(), row, row + 1);
      cell_.front().fill(false);
    }
    for (int y_above = 0; y_above < kAbove; ++y_above) {
      const auto& row = cell_[static_cast<std::size_t>(y_above)];
      result.over |= std::count(row.begin(), row.end(), true) > 0;
    }
    return result;
  }
  // Occupancy of row `r` of the field, bit c for column c.
  unsigned Row(int r) {
    unsigned bits = 0;
    for (int c = 0; c < kTetrisColumns; ++c) bits |= At(r + kAbove, c) ? 1U << c : 0U;
    return bits;
  }

 private:
  static constexpr int kAbove = 4;

  template <typename F>
  static void ForCells(const ReferenceTetris::Matrix& piece, F f) {
    for (int i = 0; i < static_cast<int>(piece.size()); ++i) {
      for (int j = 0; j < static_cast<int>(piece.size()); ++j) {
        if (piece[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] != 0) f(i, j);
      }
    }
  }
  bool& At(int y, int x) { return cell_[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)]; }
  bool Fits(const ReferenceTetris::Matrix& piece, int y, int x) {
    bool fits = true;
    ForCells(piece, [&](int i, int j) {
      fits = fits && y + i < static_cast<int>(cell_.size()) && !At(y + i, x + j);
    });
    return fits;
  }

  std::vector<std::array<bool, kTetrisColumns>> cell_;
};

template <typename Layout>
std::vector<float> ViewOf(const TetrisRecord& record,
                          void (*expand)(const std::byte*, std::int64_t, int, float*)) {
  std::vector<float> view(static_cast<std::size_t>(Layout::Floats(4)));
  expand(reinterpret_cast<const std::byte*>(&record), 1, 4, view.data());
  return view;
}

// One game on both sides.
class PairOfGames {
 public:
  PairOfGames(std::uint64_t token, const TetrisSetup& setup)
      : top_(kTetrisRows - setup.rows),
        rows_(setup.rows),
        pieces_(PhiloxPieces::Of(3, token, true)),
        slow_(setup.rows) {
    TetrisReset(record.compact, setup, pieces_, LockedColours(record));
  }

  // Plays a placement on both; returns whether the game is over.
  bool Place(int action) {
    using L = AfterstatesDtLayout;
    const int id = UnpackActive(record.compact.active).id;
    const std::vector<float> before = ViewOf<L>(record.compact, ExpandAfterstatesDt);
    const TetrisOutcome ours =
        PlacementStep(record.compact, action, false, pieces_, LockedColours(record));
    const CellGame::Result theirs = slow_.Place(id, action);
    EXPECT_EQ(ours.lines, theirs.lines);
    EXPECT_EQ(ours.terminated, theirs.over);
    EXPECT_EQ(ours.reward, theirs.over ? 0 : 10 * theirs.lines * theirs.lines + 1);
    for (int r = 0; r < rows_; ++r) EXPECT_EQ(FieldRow(record.compact, top_ + r), slow_.Row(r));
    for (int r = 0; r < top_; ++r) EXPECT_EQ(FieldRow(record.compact, r), 0U);
    ExpectColoursWhereCellsAre();
    const TetrisRecord sane = Sanitized(record.compact);
    EXPECT_EQ(std::memcmp(&sane, &record.compact, sizeof(sane)), 0);

    // What the view said of this placement is what it left.
    const float* said = &before[static_cast<std::size_t>(action * L::kRowFloats)];
    EXPECT_EQ(said[15], ours.terminated ? 1.0F : 0.0F);
    if (!ours.terminated) {
      const std::vector<float> after = ViewOf<L>(record.compact, ExpandAfterstatesDt);
      EXPECT_EQ(said[13], static_cast<float>(ours.lines) * AfterstatesLayout::kLinesScale);
      for (int i = 0; i < 13; ++i) EXPECT_EQ(said[i], after[L::kPresent + i]) << i;
      for (int i = 0; i < 5; ++i) EXPECT_EQ(said[16 + i], after[L::kPresent + 13 + i]) << i;
    }
    return ours.terminated;
  }

  // The legal placement that leaves the fewest holes and the lowest stack.
  int PackingChoice() const {
    using L = AfterstatesLayout;
    const std::vector<float> view = ViewOf<L>(record.compact, ExpandAfterstates);
    int best = 0;
    float best_score = 1e9F;
    for (int action = 0; action < kPlacementActions; ++action) {
      if ((PlacementMask(record.compact) >> action & 1) == 0) continue;
      const float* row = &view[static_cast<std::size_t>(action * L::kRowFloats)];
      const float score = 8 * row[11] + row[10] + row[12] + row[14] - row[13] + 100 * row[15];
      if (score < best_score) best = action;
      best_score = std::min(best_score, score);
    }
    return best;
  }
  int AnyLegal(Draws& draws) const {
    for (;;) {
      const int action = draws.Below(kPlacementActions);
      if ((PlacementMask(record.compact) >> action & 1) != 0) return action;
    }
  }

  ColourRecord record = {};

 private:
  void ExpectColoursWhereCellsAre() const {
    for (int r = 0; r < kTetrisRows; ++r) {
      for (int c = 0; c < kTetrisColumns; ++c) {
        const bool locked = (FieldRow(record.compact, r) >> c & 1) != 0;
        EXPECT_EQ(ColourAt(record, r, c) != 0, locked) << r << ", " << c;
      }
    }
  }

  const int top_, rows_;
  PhiloxPieces pieces_;
  CellGame slow_;
};

TEST(SpawnAboveTest, GamesEqualAFieldOfCellsAndTheViewsTellThem) {
  Draws draws(5);
  unsigned lines = 0;
  std::uint64_t token = 0;
  for (const int rows : {5, 7, 10, 16, 17, 18, 20}) {
    for (int game = 0; game < 40; ++game) {
      PairOfGames pair(token++, {.queue_size = game % 3, .rows = rows, .spawn_above = true});
      const bool packs = game % 2 == 0;
      bool over = false;
      for (int piece = 0; piece < 400 && !over; ++piece) {
        const bool follows = packs && draws.Below(8) != 0;
        over = pair.Place(follows ? pair.PackingChoice() : pair.AnyLegal(draws));
        ASSERT_FALSE(HasFailure()) << rows << " rows, game " << game << ", piece " << piece;
      }
      lines += pair.record.compact.lines;
    }
  }
  EXPECT_GT(lines, 500U);
}

// A piece that stands out of a full field comes to lie inside it when it clears a row.
TEST(SpawnAboveTest, ClearedRowsMakeRoomForWhatStandsOut) {
  const std::uint8_t ids[] = {0};  // I, always
  SequencePieces pieces = {ids, 1, 0};
  TetrisRecord record;
  TetrisReset(record, {.queue_size = 0, .rows = 5, .spawn_above = true}, pieces);
  // Four columns of five cells are filled but for the last; then I pieces stand in column 9.
  for (int r = 15; r < 20; ++r) record.row[r] |= 0x1FF << kTetrisFieldShift;
  record.row[19] |= 1 << (kTetrisFieldShift + 9);
  record.row[19] &= static_cast<std::uint16_t>(~(1 << kTetrisFieldShift));
  // Stands on row 19: rows 15 to 18, none above.
  TetrisRecord inside = record;
  const TetrisOutcome four = PlacementStep(inside, 9 * 4 + 3, false, pieces);
  EXPECT_EQ(four.lines, 4);
  EXPECT_FALSE(four.terminated);
  // One row higher: its highest cell stands out and takes a cleared row's place.
  record.row[18] |= 1 << (kTetrisFieldShift + 9);
  record.row[18] &= static_cast<std::uint16_t>(~(1 << kTetrisFieldShift));
  const TetrisOutcome three = PlacementStep(record, 9 * 4 + 3, false, pieces);
  EXPECT_EQ(three.lines, 3);
  EXPECT_FALSE(three.terminated);
  EXPECT_EQ(FieldRow(record, 17), 0x200U);
  EXPECT_EQ(FieldRow(record, 16), 0U);
  // One row is cleared where three are needed: it is over, and the row counts.
  record.row[16] |= 0x200 << kTetrisFieldShift;
  record.row[15] |= 0x1FF << kTetrisFieldShift;
  const TetrisOutcome one = PlacementStep(record, 9 * 4 + 3, false, pieces);
  EXPECT_TRUE(one.terminated);
  EXPECT_EQ(one.lines, 1);
  EXPECT_EQ(one.reward, 0);
}

TEST(SpawnAboveTest, AnIllegalChoiceThatIsANoopMovesNothing) {
  PhiloxPieces pieces = PhiloxPieces::Of(1, 2, true);
  TetrisRecord record;
  TetrisReset(record, {.queue_size = 1, .rows = 10, .spawn_above = true}, pieces);
  const TetrisRecord before = record;
  const int illegal = std::countr_one(PlacementMask(record));
  ASSERT_LT(illegal, kPlacementActions);
  const TetrisOutcome outcome = PlacementStep(record, illegal, true, pieces);
  EXPECT_TRUE(outcome.illegal);
  EXPECT_FALSE(outcome.terminated);
  EXPECT_EQ(std::memcmp(&record, &before, sizeof(record)), 0);
}

TEST(SpawnAboveTest, WithoutAPreviewEachPieceIsTheNextDrawn) {
  PhiloxPieces pieces = PhiloxPieces::Of(1, 2, false), same = pieces;
  TetrisRecord record;
  TetrisReset(record, {.queue_size = 0, .rows = 20}, pieces);
  for (int piece = 0; piece < 8; ++piece) {
    EXPECT_EQ(UnpackActive(record.active).id, same.Next()) << piece;
    EXPECT_EQ(record.queue, 0U);
    ASSERT_FALSE(PlacementStep(record, 16, false, pieces).terminated);
  }
}

TEST(SpawnAboveTest, GamesOfKeyPressesRefuseIt) {
  const auto refusal = [](const EnvConfig& config) -> std::string {
    try {
      MakeEnvSpec(config);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal({.name = "tetris", .spawn_above = true}).find("tetris places none"),
            std::string::npos);
  EXPECT_EQ(refusal({.name = "tetris-placement", .spawn_above = true}), "");
}

}  // namespace
}  // namespace tetrion
