#include "lib/envs/views/views.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "lib/envs/views/field_shape.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

const std::byte* Bytes(const void* record) {
  return static_cast<const std::byte*>(record);
}

// O active, then I T S Z in the queue; nothing held.
TetrisRecord FreshRecord() {
  static const std::uint8_t ids[] = {1, 0, 2, 3, 4};
  SequencePieces pieces = {ids, 5, 0};
  TetrisRecord record = {};
  TetrisReset(record, {4}, pieces);
  return record;
}

float Sum(const std::vector<float>& view, int from, int count) {
  float sum = 0;
  for (int i = from; i < from + count; ++i) sum += view[static_cast<std::size_t>(i)];
  return sum;
}

TEST(PlanesTest, OffsetsAreTheDocumentedOnes) {
  EXPECT_EQ(PlanesLayout::Floats(4), 448);
  EXPECT_EQ(AfterstatesLayout::Floats(4), 40 * 16 + 20 + 28);
  TetrisRecord record = FreshRecord();
  record.row[19] |= 1U << 3 | 1U << 12;
  record.holder = PackHolder(5, 2);
  record.flags |= kTetrisSwapped;
  std::vector<float> view(448, -1.0F);
  ExpandPlanes(Bytes(&record), 1, 4, view.data());
  EXPECT_EQ(Sum(view, PlanesLayout::kField, 200), 2.0F);
  EXPECT_EQ(view[190], 1.0F);
  EXPECT_EQ(view[199], 1.0F);
  EXPECT_EQ(Sum(view, PlanesLayout::kActive, 200), 4.0F);
  for (const std::size_t cell : {204, 205, 214, 215}) EXPECT_EQ(view[cell], 1.0F);
  EXPECT_EQ(view[400 + 1], 1.0F);
  EXPECT_EQ(view[407 + 0], 1.0F);
  EXPECT_EQ(view[411 + 5], 1.0F);
  EXPECT_EQ(view[419], 1.0F);
  EXPECT_EQ(view[420 + 0], 1.0F);
  EXPECT_EQ(view[427 + 2], 1.0F);
  EXPECT_EQ(view[434 + 3], 1.0F);
  EXPECT_EQ(view[441 + 4], 1.0F);
  EXPECT_EQ(Sum(view, 400, 48), 1 + 1 + 1 + 1 + 4.0F);
}

TEST(PlanesTest, EmptyHolderIsTheEighthBit) {
  const TetrisRecord record = FreshRecord();
  std::vector<float> view(448);
  ExpandPlanes(Bytes(&record), 1, 4, view.data());
  EXPECT_EQ(view[411 + 7], 1.0F);
}

TEST(AfterstatesTest, FirstOOnAnEmptyField) {
  const TetrisRecord record = FreshRecord();
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(4)));
  ExpandAfterstates(Bytes(&record), 1, 4, view.data());
  const float* row = &view[4 * 16];  // column 1, no rotation: the O lies in columns 0 and 1
  EXPECT_FLOAT_EQ(row[0], 2.0F / 20);
  EXPECT_FLOAT_EQ(row[1], 2.0F / 20);
  EXPECT_EQ(row[2], 0.0F);
  EXPECT_FLOAT_EQ(row[10], 2.0F / 20);
  EXPECT_EQ(row[11], 0.0F);
  EXPECT_FLOAT_EQ(row[12], 2.0F / 50);
  EXPECT_EQ(row[13], 0.0F);
  EXPECT_EQ(row[14], 0.0F);
  EXPECT_EQ(row[15], 0.0F);
  EXPECT_EQ(Sum(view, 0, 16), 0.0F);  // column 0 reaches into the wall
  EXPECT_EQ(Sum(view, AfterstatesLayout::kPresent, 13), 0.0F);
  EXPECT_EQ(view[AfterstatesLayout::kActiveId + 1], 1.0F);
  EXPECT_EQ(view[AfterstatesLayout::kQueue + 0], 1.0F);
  EXPECT_EQ(Sum(view, AfterstatesLayout::kQueue, 28), 4.0F);
}

TEST(AfterstatesTest, LandingRowCountsRowsBelowThePieceAndLinesAreQuarters) {
  TetrisRecord record = FreshRecord();
  record.row[19] = 0xFFFF & ~(1U << 12);  // nine locked, field column 9 free
  record.row[18] = record.row[19];
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(4)));
  ExpandAfterstates(Bytes(&record), 1, 4, view.data());
  EXPECT_FLOAT_EQ(view[4 * 16 + 14], 2.0F / 20);  // on top of two rows
  record.active = PackActive({0, 0, 7, 0});       // an I: vertical into column 9 clears both rows
  ExpandAfterstates(Bytes(&record), 1, 4, view.data());
  const float* row = &view[(9 * 4 + 3) * 16];
  EXPECT_FLOAT_EQ(row[13], 2.0F / 4);
  EXPECT_EQ(row[14], 0.0F);
  EXPECT_FLOAT_EQ(row[9], 2.0F / 20);
  EXPECT_EQ(row[0], 0.0F);
}

using DtLayout = AfterstatesDtLayout;

// The five numbers of columns 16-20 as WriteRow scales them.
std::vector<float> ScaledShape(const TetrisRecord& field) {
  const FieldShape shape = ShapeOf(field);
  return {static_cast<float>(shape.row_transitions) * DtLayout::kRowTransitionsScale,
          static_cast<float>(shape.column_transitions) * DtLayout::kColumnTransitionsScale,
          static_cast<float>(shape.cumulative_wells) * DtLayout::kWellsScale,
          static_cast<float>(shape.hole_depth) * DtLayout::kDepthScale,
          static_cast<float>(shape.rows_with_holes) * DtLayout::kHoleRowsScale};
}

// How many of -2..2 are differences of neighbours among the ten heights of a row.
float PatternDiversity(const float* row) {
  std::set<int> found;
  for (int c = 0; c < 9; ++c) {
    const int difference = static_cast<int>(std::lround((row[c] - row[c + 1]) * 20));
    if (std::abs(difference) <= 2) found.insert(difference);
  }
  return static_cast<float>(found.size()) / 5;
}

// Row `action` of `afterstates-dt` against that of `afterstates` and the field that the rules
// leave. The piece's landing is found by hand: `played` has no more of it.
void ExpectDtRow(const TetrisRecord& record, int action, const float* dt, const float* plain) {
  ASSERT_EQ(std::memcmp(dt, plain, 16 * sizeof(float)), 0) << action;
  TetrisRecord played = record;
  PhiloxPieces any = PhiloxPieces::Of(0, 0, false);
  const TetrisOutcome outcome = PlacementStep(played, action, false, any);
  const bool fits = played.pieces == record.pieces + 1;
  if (outcome.illegal || !fits) {
    // What collides at its top and not a row lower shows a field that the rules never reach.
    if (outcome.illegal) {
      for (int i = 16; i < DtLayout::kRowFloats; ++i) ASSERT_EQ(dt[i], 0.0F) << action;
    }
    return;
  }
  const std::vector<float> shape = ScaledShape(played);
  for (std::size_t i = 0; i < shape.size(); ++i) ASSERT_EQ(dt[16 + i], shape[i]) << action;
  ASSERT_FLOAT_EQ(dt[23], PatternDiversity(dt)) << action;
  // The piece's cells, row by row from where it lies.
  const TetrisPiece piece = UnpackActive(record.active);
  const std::uint64_t box = PieceRows(piece.id, (piece.rotation + action) & 3);
  int height = 0, first = -1;
  for (int i = 0; i < 4; ++i) {
    if ((box >> (16 * i) & 15) == 0) continue;
    if (first < 0) first = i;
    ++height;
  }
  const float below = dt[14] * 20;
  ASSERT_FLOAT_EQ(dt[22] * 20, below + static_cast<float>(height - 1) / 2) << action;
  int cells_in_full_rows = 0;
  for (int i = 0; i < height; ++i) {
    const int r = kTetrisRows - 1 - static_cast<int>(std::lround(below)) - (height - 1) + i;
    const auto x = static_cast<unsigned>(action / 4 + 4 - PieceSize(piece.id) / 2 - 1);
    const auto cells = static_cast<unsigned>((box >> (16 * (first + i)) & 15) << x);
    if ((record.row[r] | cells) == kTetrisFullRow) cells_in_full_rows += std::popcount(cells);
  }
  ASSERT_FLOAT_EQ(dt[21] * 4, static_cast<float>(outcome.lines * cells_in_full_rows)) << action;
}

TEST(AfterstatesDtTest, RowsAreThoseOfAfterstatesAndTheShapeOfTheFieldThatPlacementsLeave) {
  testing::Draws draws(22);
  std::vector<float> plain(static_cast<std::size_t>(AfterstatesLayout::Floats(2)));
  std::vector<float> dt(static_cast<std::size_t>(DtLayout::Floats(2)));
  unsigned lines = 0;
  for (std::uint64_t token = 0; token < 160; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(5, token, true);
    TetrisRecord record;
    TetrisReset(record, {2, token % 2 == 0 ? kTetrisRows : 5 + static_cast<int>(token % 16)},
                pieces);
    bool over = false;
    for (int step = 0; step < 40 && !over; ++step) {
      ExpandAfterstates(Bytes(&record), 1, 2, plain.data());
      ExpandAfterstatesDt(Bytes(&record), 1, 2, dt.data());
      int best = 0;
      for (int action = 0; action < kPlacementActions; ++action) {
        const auto a = static_cast<std::size_t>(action);
        ASSERT_NO_FATAL_FAILURE(ExpectDtRow(record, action, &dt[a * 24], &plain[a * 16]));
        const auto score = [&](std::size_t i) {
          return 8 * plain[i * 16 + 11] + plain[i * 16 + 12] + plain[i * 16 + 14];
        };
        const bool legal = (PlacementMask(record) >> action & 1) != 0;
        const bool best_legal = (PlacementMask(record) >> best & 1) != 0;
        if (legal && (!best_legal || score(a) < score(static_cast<std::size_t>(best)))) {
          best = action;
        }
      }
      const float* present = &dt[DtLayout::kPresent];
      ASSERT_EQ(std::memcmp(present, &plain[AfterstatesLayout::kPresent], 13 * sizeof(float)), 0);
      const std::vector<float> shape = ScaledShape(record);
      ASSERT_EQ(std::memcmp(present + 13, shape.data(), shape.size() * sizeof(float)), 0);
      ASSERT_EQ(std::memcmp(&dt[DtLayout::kActiveId], &plain[AfterstatesLayout::kActiveId],
                            (7 + 14) * sizeof(float)),
                0);
      over = PlacementStep(record, draws.Below(8) == 0 ? draws.Below(40) : best, true, pieces)
                 .terminated;
    }
    lines += record.lines;
  }
  EXPECT_GT(lines, 500U);
}

// Actions that do nothing let the piece fall, also below cells that a drop from the top meets.
TEST(AfterstatesTest, EndsAreThoseOfADropFromWhereThePieceIs) {
  constexpr int kQueue = 2;
  testing::Draws draws(33);
  std::vector<float> view(static_cast<std::size_t>(AfterstatesLayout::Floats(kQueue)));
  int fallen = 0;
  for (std::uint64_t token = 0; token < 400; ++token) {
    PhiloxPieces pieces = PhiloxPieces::Of(6, token, true);
    TetrisRecord record;
    TetrisReset(record, {kQueue, 5 + static_cast<int>(token % 8), false}, pieces);
    bool over = false;
    for (int step = 0; step < 60 && !over; ++step) {
      ExpandAfterstates(Bytes(&record), 1, kQueue, view.data());
      const std::uint64_t legal = PlacementMask(record);
      const bool has_fallen = UnpackActive(record.active).y > TopRow(record);
      for (int action = 0; action < kPlacementActions; ++action) {
        if ((legal >> action & 1) == 0) continue;
        TetrisRecord played = record;
        PhiloxPieces next = pieces;
        const bool ends = PlacementStep(played, action, true, next).terminated;
        const auto at = static_cast<std::size_t>(action * AfterstatesLayout::kRowFloats);
        ASSERT_EQ(view[at + AfterstatesLayout::kEnds], ends ? 1.0F : 0.0F)
            << token << ' ' << action;
        fallen += has_fallen ? 1 : 0;
      }
      int action = draws.Below(kPlacementActions);
      if (draws.Below(2) == 0 && ~legal != 0) action = std::countr_one(legal);
      over = PlacementStep(record, action % kPlacementActions, true, pieces).terminated;
    }
  }
  EXPECT_GT(fallen, 10'000);
}

// An I would find no room. That one comes is only known where there is a queue.
TEST(AfterstatesTest, WithoutAPreviewNoPlacementEndsTheGameForThePieceThatFollows) {
  using L = AfterstatesLayout;
  const std::uint8_t ids[] = {1, 0};
  for (const int queue_size : {0, 1}) {
    SequencePieces pieces = {ids, 2};
    TetrisRecord record = {};
    TetrisReset(record, {queue_size}, pieces);
    ASSERT_EQ(UnpackActive(record.active).id, 1);
    record.row[1] |= 1U << (kTetrisFieldShift + 6);
    std::vector<float> view(static_cast<std::size_t>(L::Floats(queue_size)));
    ExpandAfterstates(Bytes(&record), 1, queue_size, view.data());
    const float* const first_columns = view.data() + 4 * L::kRowFloats;
    EXPECT_EQ(first_columns[0], 2 * L::kHeightScale);
    EXPECT_EQ(first_columns[L::kEnds], queue_size == 0 ? 0.0F : 1.0F) << queue_size;
  }
}

// Rings are not trusted: any bytes give finite numbers inside the view's memory.
TEST(ViewsTest, ArbitraryBytesStayInsideTheView) {
  testing::Draws draws(21);
  for (int i = 0; i < 3000; ++i) {
    std::uint32_t words[16];
    for (auto& word : words) word = i == 0 ? 0 : i == 1 ? 0xFFFFFFFF : draws.Word();
    const int queue_size = 1 + i % 7;
    const auto planes = static_cast<std::size_t>(PlanesLayout::Floats(queue_size));
    const auto after = static_cast<std::size_t>(AfterstatesLayout::Floats(queue_size));
    const auto after_dt = static_cast<std::size_t>(AfterstatesDtLayout::Floats(queue_size));
    std::vector<float> view(std::max({planes, after, after_dt}) + 1, 0.0F);
    view[planes] = 42.0F;
    ExpandPlanes(Bytes(words), 1, queue_size, view.data());
    ASSERT_EQ(view[planes], 42.0F);
    view[after] = 42.0F;
    ExpandAfterstates(Bytes(words), 1, queue_size, view.data());
    ASSERT_EQ(view[after], 42.0F);
    view[after_dt] = 42.0F;
    ExpandAfterstatesDt(Bytes(words), 1, queue_size, view.data());
    ASSERT_EQ(view[after_dt], 42.0F);
    for (const float value : view) ASSERT_TRUE(std::isfinite(value));
    TetrisRecord record;
    std::memcpy(&record, words, sizeof(record));
    ASSERT_FALSE(RenderAnsi(record).empty());
  }
}

TEST(ViewsTest, ManyRecordsExpandAsOneByOne) {
  std::vector<TetrisRecord> records;
  PhiloxPieces pieces = PhiloxPieces::Of(9, 9, false);
  TetrisRecord record;
  TetrisReset(record, {3}, pieces);
  for (int i = 0; i < 17; ++i) {
    records.push_back(record);
    (void)PlacementStep(record, 4 * (1 + 3 * i % 8), true, pieces);
  }
  for (const auto& [expand, floats] :
       {std::pair{&ExpandPlanes, PlanesLayout::Floats(3)},
        std::pair{&ExpandAfterstates, AfterstatesLayout::Floats(3)},
        std::pair{&ExpandAfterstatesDt, AfterstatesDtLayout::Floats(3)}}) {
    std::vector<float> all(static_cast<std::size_t>(17 * floats)),
        one(static_cast<std::size_t>(floats));
    expand(Bytes(records.data()), 17, 3, all.data());
    for (std::size_t i = 0; i < 17; ++i) {
      expand(Bytes(&records[i]), 1, 3, one.data());
      ASSERT_EQ(std::memcmp(one.data(), &all[i * one.size()], one.size() * sizeof(float)), 0) << i;
    }
  }
}

TEST(RenderAnsiTest, RowsThatAreNotPlayedOnAreBlank) {
  static const std::uint8_t ids[] = {1, 0};
  SequencePieces pieces = {ids, 2, 0};
  TetrisRecord record = {};
  TetrisReset(record, {1, 10}, pieces);
  const std::string text = RenderAnsi(record);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_EQ(std::count(text.begin(), text.end(), '|'), 2 * 10);
}

TEST(RenderAnsiTest, ShowsFieldPieceQueueHolderAndCounters) {
  TetrisRecord record = FreshRecord();
  record.row[19] |= 1U << 3;
  record.lines = 12;
  record.pieces = 345;
  std::string text = RenderAnsi(record);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_NE(text.find("lines  12"), std::string::npos);
  EXPECT_NE(text.find("pieces 345"), std::string::npos);
  const auto blocks = [&text](int colour) {
    const std::string block = "\033[48;5;" + std::to_string(colour) + "m";
    int count = 0;
    for (std::size_t at = text.find(block); at != std::string::npos; at = text.find(block, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(blocks(226), 4);                                                 // the active O
  EXPECT_EQ(blocks(250), 1);                                                 // one locked cell
  for (const int colour : {51, 129, 46, 196}) EXPECT_EQ(blocks(colour), 4);  // I T S Z queued
  EXPECT_EQ(blocks(21), 0);
  record.holder = PackHolder(5, 1);
  text = RenderAnsi(record);
  EXPECT_EQ(blocks(21), 4);  // a held J, standing
}

}  // namespace
}  // namespace tetrion
