#include "lib/envs/views/gym_views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

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
using Dict = std::vector<std::uint8_t>;

const std::byte* Bytes(const ColourRecord* records) {
  return reinterpret_cast<const std::byte*>(records);
}

std::size_t DictBytes(int queue_size) {
  return static_cast<std::size_t>(DictLayout::Bytes(queue_size));
}

Dict DictOf(const ColourRecord& record, int queue_size) {
  Dict dict(DictBytes(queue_size), 77);
  ExpandDict(Bytes(&record), 1, queue_size, dict.data());
  return dict;
}

std::uint8_t& Cell(Dict& dict, int array, int columns, int row, int column) {
  return dict[static_cast<std::size_t>(array + row * columns + column)];
}

// The four arrays cell by cell from the plain game.
Dict DictOf(const ReferenceTetris& game, int queue_size) {
  Dict dict(DictBytes(queue_size), 0);
  const int size = static_cast<int>(game.matrix().size());
  bool collides = false;
  for (int y = 0; y < DictLayout::kRows; ++y) {
    for (int x = 0; x < DictLayout::kColumns; ++x) {
      const int cell = game.board()[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)];
      Cell(dict, DictLayout::kBoard, 18, y, x) = static_cast<std::uint8_t>(cell);
      const int i = y - game.y(), j = x - game.x();
      if (i < 0 || j < 0 || i >= size || j >= size) continue;
      Cell(dict, DictLayout::kActiveMask, 18, y, x) = 1;
      const bool covered =
          game.matrix()[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] != 0;
      collides |= covered && cell != 0;
    }
  }
  const auto draw = [&dict](const ReferenceTetris::Matrix& matrix, int array, int columns, int y,
                            int x, int value) {
    for (int i = 0; i < static_cast<int>(matrix.size()); ++i) {
      for (int j = 0; j < static_cast<int>(matrix.size()); ++j) {
        if (matrix[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] == 0) continue;
        Cell(dict, array, columns, y + i, x + j) = static_cast<std::uint8_t>(value);
      }
    }
  };
  if (!collides) draw(game.matrix(), DictLayout::kBoard, 18, game.y(), game.x(), game.id() + 2);
  if (game.held().empty()) std::fill_n(&dict[DictLayout::kHolder], 16, std::uint8_t{1});
  draw(game.held(), DictLayout::kHolder, 4, 0, 0, game.held_id() + 2);
  for (int slot = 0; slot < queue_size; ++slot) {
    const int id = game.queue()[static_cast<std::size_t>(slot)];
    draw(ReferenceTetris::PieceMatrix(id), DictLayout::kQueue, 4 * queue_size, 0, 4 * slot, id + 2);
  }
  return dict;
}

// A game of `steps` placements, mostly sensible.
std::vector<ColourRecord> PlayedRecords(int steps, int queue_size) {
  std::vector<ColourRecord> records;
  Draws draws(41);
  PhiloxPieces pieces = PhiloxPieces::Of(9, 9, false);
  ColourRecord record;
  TetrisReset(record.compact, {queue_size}, pieces, LockedColours(record));
  for (int i = 0; i < steps; ++i) {
    records.push_back(record);
    const int action =
        draws.Below(4) == 0 ? 4 * draws.Below(10) : testing::GreedyPlacement(record.compact);
    if (!PlacementStep(record.compact, action, true, pieces, LockedColours(record)).terminated)
      continue;
    TetrisReset(record.compact, {queue_size}, pieces, LockedColours(record));
  }
  return records;
}

TEST(DictTest, EqualsThePlainGameForEveryQueueSizeAlsoWhenTheGameIsOver) {
  Draws draws(42);
  int endings = 0;
  for (std::uint64_t token = 0; token < 70; ++token) {
    const int queue_size = 1 + static_cast<int>(token % 7);
    PhiloxPieces pieces = PhiloxPieces::Of(4, token, token % 2 == 0);
    PhiloxPieces same_pieces = pieces;
    ColourRecord record;
    TetrisReset(record.compact, {queue_size}, pieces, LockedColours(record));
    ReferenceTetris game(queue_size, [&same_pieces] { return same_pieces.Next(); });
    ASSERT_EQ(DictOf(record, queue_size), DictOf(game, queue_size));
    for (int i = 0; i < 300; ++i) {
      const int action = draws.Below(kTetrisActions);
      const bool over =
          TetrisStep(record.compact, action, pieces, LockedColours(record)).terminated;
      (void)game.Step(action);
      ASSERT_EQ(DictOf(record, queue_size), DictOf(game, queue_size)) << token << ' ' << i;
      endings += over;
      if (over) break;
    }
  }
  EXPECT_GT(endings, 20) << "the piece that collides must have been seen";
}

TEST(DictTest, SlotsThatARecordDoesNotHaveAreZeroAndLongerQueuesAreCut) {
  static const std::uint8_t ids[] = {1, 0, 2, 3};
  SequencePieces pieces = {ids, 4, 0};
  ColourRecord record;
  TetrisReset(record.compact, {2}, pieces, LockedColours(record));
  Dict longer = DictOf(record, 3);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Cell(longer, DictLayout::kQueue, 12, 1, i), 2) << "the I lies in its second row";
    for (int j = 8; j < 12; ++j) EXPECT_EQ(Cell(longer, DictLayout::kQueue, 12, i, j), 0);
  }
  Dict shorter = DictOf(record, 1);
  EXPECT_EQ(shorter.size(), 896U);
  EXPECT_EQ(Cell(shorter, DictLayout::kQueue, 4, 1, 3), 2);
}

TEST(FlatTest, IsTheDictInFloatsForAnyNumberOfRecords) {
  for (const int queue_size : {1, 3, 4, 7}) {
    const std::vector<ColourRecord> records = PlayedRecords(40, queue_size);
    const std::size_t bytes = DictBytes(queue_size);
    std::vector<float> flat(bytes * records.size() + 1, 42.0F);
    ExpandFlat(Bytes(records.data()), static_cast<std::int64_t>(records.size()), queue_size,
               flat.data());
    Dict dicts(bytes * records.size() + 1, 42);
    ExpandDict(Bytes(records.data()), static_cast<std::int64_t>(records.size()), queue_size,
               dicts.data());
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Dict one = DictOf(records[i], queue_size);
      for (std::size_t k = 0; k < bytes; ++k) {
        ASSERT_EQ(dicts[i * bytes + k], one[k]);
        ASSERT_EQ(flat[i * bytes + k], static_cast<float>(one[k]));
      }
    }
    EXPECT_EQ(flat.back(), 42.0F);
    EXPECT_EQ(dicts.back(), 42);
  }
}

TEST(FlatTest, IsAViewOfBothGamesMadeFromColourRecords) {
  for (const char* name : {"tetris", "tetris-placement"}) {
    const EnvSpec spec = MakeEnvSpec({.name = name, .view = "flat"});
    EXPECT_EQ(spec.obs.record, "colour");
    EXPECT_EQ(spec.obs.record_bytes, 168U);
    EXPECT_EQ(spec.obs.view_floats, 944);
    EXPECT_EQ(spec.obs.expand, &ExpandFlat);
    EXPECT_EQ(MakeEnvSpec({.name = name, .view = "flat", .queue_size = 3}).obs.view_floats, 928);
  }
}

// Rings are not trusted: any bytes, at any address, give cells of four bits inside the memory.
TEST(GymViewsTest, ArbitraryBytesStayInsideTheViewAtAnyAlignment) {
  Draws draws(43);
  for (int i = 0; i < 4000; ++i) {
    std::byte bytes[sizeof(ColourRecord) + 3];
    for (auto& byte : bytes) {
      byte = i == 0 ? std::byte{0} : i == 1 ? std::byte{255} : std::byte(draws.Below(256));
    }
    const std::byte* record = bytes + i % 4;
    const int queue_size = 1 + i % 7;
    Dict dict(DictBytes(queue_size) + 1, 99);
    ExpandDict(record, 1, queue_size, dict.data());
    ASSERT_EQ(dict.back(), 99);
    dict.pop_back();
    ASSERT_LE(*std::max_element(dict.begin(), dict.end()), 15);
    std::vector<float> flat(dict.size() + 1, 99.0F);
    ExpandFlat(record, 1, queue_size, flat.data());
    ASSERT_EQ(flat.back(), 99.0F);
    for (std::size_t k = 0; k < dict.size(); ++k) ASSERT_EQ(flat[k], static_cast<float>(dict[k]));
  }
}

TEST(UncolouredRecordTest, EveryLockedCellHasTheUnknownColour) {
  const ColourRecord record = PlayedRecords(15, 4).back();
  const ColourRecord grey = UncolouredRecord(record.compact);
  EXPECT_EQ(std::memcmp(&grey.compact, &record.compact, sizeof(TetrisRecord)), 0);
  int locked = 0;
  for (int r = 0; r < kTetrisRows; ++r) {
    for (int c = 0; c < kTetrisColumns; ++c) {
      locked += ColourAt(record, r, c) != 0;
      ASSERT_EQ(ColourAt(grey, r, c), ColourAt(record, r, c) != 0 ? kUnknownColour : 0);
    }
  }
  EXPECT_GT(locked, 0);
}

}  // namespace
}  // namespace tetrion
