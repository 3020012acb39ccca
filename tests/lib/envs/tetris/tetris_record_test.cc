#include "lib/envs/tetris/tetris_record.h"

#include <gtest/gtest.h>

#include <cstring>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

TEST(TetrisRecordTest, ActivePieceSurvivesPackingForEveryPosition) {
  for (int id = 0; id < kTetrisPieces; ++id) {
    for (int rotation = 0; rotation < 4; ++rotation) {
      for (int x = 2; x <= 12; ++x) {
        for (int y = 0; y <= 18; ++y) {
          const TetrisPiece piece = UnpackActive(PackActive({id, rotation, x, y}));
          ASSERT_EQ(piece.id, id);
          ASSERT_EQ(piece.rotation, rotation);
          ASSERT_EQ(piece.x, x);
          ASSERT_EQ(piece.y, y);
        }
      }
    }
  }
}

// Golden bytes: stored replays and other processes read records by these bits.
TEST(TetrisRecordTest, FreshGameHasTheDocumentedBits) {
  const std::uint8_t ids[] = {0, 1, 2, 3, 4};  // I active, O T S Z queued
  SequencePieces pieces = {ids, 5, 0};
  TetrisRecord record;
  std::memset(&record, 0xFF, sizeof(record));
  TetrisReset(record, {4}, pieces);
  unsigned char bytes[64];
  std::memcpy(bytes, &record, 64);
  for (int r = 0; r < 20; ++r) {
    EXPECT_EQ(bytes[2 * r], 0x07);
    EXPECT_EQ(bytes[2 * r + 1], 0xE0);
  }
  for (int r = 20; r < 24; ++r) EXPECT_EQ(bytes[2 * r] | bytes[2 * r + 1] << 8, 0xFFFE);
  EXPECT_EQ(bytes[48] | bytes[49] << 8, 7 << 5);  // id 0, rotation 0, x 7, y 0
  EXPECT_EQ(bytes[50], 7);
  EXPECT_EQ(bytes[51], 4 << 1);
  EXPECT_EQ(record.queue, 1U | 2U << 3 | 3U << 6 | 4U << 9);
  EXPECT_EQ(record.lines, 0U);
  EXPECT_EQ(record.pieces, 0U);
}

TEST(TetrisRecordTest, AccessorsReadWhatWasPacked) {
  TetrisRecord record = {};
  record.holder = PackHolder(6, 3);
  record.flags = 1 | 5 << 1 | 15 << 4;
  record.queue = 2U << 12;
  record.row[4] = kTetrisEmptyRow | 1U << 3 | 1U << 12;
  EXPECT_EQ(HolderId(record), 6);
  EXPECT_EQ(HolderRotation(record), 3);
  EXPECT_TRUE(HasSwapped(record));
  EXPECT_EQ(QueueSize(record), 5);
  EXPECT_EQ(TopRow(record), 15);
  EXPECT_EQ(QueueSlot(record, 4), 2);
  EXPECT_EQ(FieldRow(record, 4), 0b1000000001U);
}

TEST(TetrisRecordTest, SanitizedLeavesRecordsOfRealGamesAlone) {
  testing::Draws draws(11);
  for (int game = 0; game < 50; ++game) {
    PhiloxPieces pieces = PhiloxPieces::Of(3, static_cast<std::uint64_t>(game), game % 2 == 0);
    TetrisRecord record;
    TetrisReset(record, {1 + game % 7, game % 2 == 0 ? kTetrisRows : 5 + game % 16}, pieces);
    bool over = false;
    while (!over) {
      const TetrisRecord clean = Sanitized(record);
      ASSERT_EQ(std::memcmp(&clean, &record, sizeof(record)), 0);
      over = game % 3 == 0 ? PlacementStep(record, draws.Below(40), true, pieces).terminated
                           : TetrisStep(record, draws.Below(8), pieces).terminated;
    }
  }
}

TEST(TetrisRecordTest, SanitizedMakesAnyBytesPlayable) {
  testing::Draws draws(12);
  for (int i = 0; i < 20000; ++i) {
    std::uint32_t words[16];
    for (auto& word : words) word = draws.Word();
    TetrisRecord record;
    std::memcpy(&record, words, sizeof(record));
    const std::uint32_t queue = record.queue;
    record = Sanitized(record);
    ASSERT_LT(UnpackActive(record.active).id, kTetrisPieces);
    ASSERT_GE(UnpackActive(record.active).y, TopRow(record));
    ASSERT_LE(UnpackActive(record.active).y, 18);
    ASSERT_GE(UnpackActive(record.active).x, 2);
    ASSERT_LE(UnpackActive(record.active).x, 12);
    for (int r = 0; r < TopRow(record); ++r) ASSERT_EQ(FieldRow(record, r), 0U);
    for (int slot = 0; slot < kTetrisMaxQueue; ++slot) {
      const auto id = static_cast<int>(queue >> (3 * slot) & 7);
      ASSERT_EQ(QueueSlot(record, slot), slot < QueueSize(record) && id < kTetrisPieces ? id : 0);
    }
    ASSERT_EQ(record.queue >> (3 * kTetrisMaxQueue), 0U);
    PhiloxPieces pieces = PhiloxPieces::Of(1, 2, false);
    (void)TetrisStep(record, draws.Below(8), pieces);  // under asan: stays inside the record
    (void)PlacementStep(record, draws.Below(40), true, pieces);
  }
}

}  // namespace
}  // namespace tetrion
