#include "lib/collect/lane_book.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <vector>

#include "tests/support/fake_lanes.h"

namespace tetrion {
namespace {

using testing::CountingEnv;
using testing::Recorder;

struct LaneBookTest : ::testing::Test {
  LaneBookTest() : memory(layout.row_bytes), row(layout, memory.data()) {
    std::fill_n(row.flags, 2, std::uint8_t{0});
  }
  void Play(int lane, std::uint64_t token) {
    env.Reset(lane, {.id = token, .max_steps = 9});
    book.Begin(lane);
  }

  const RowLayout layout{{.record_bytes = 16, .lanes = 2, .has_mask = false}};
  std::vector<std::byte> memory;
  RowView row;
  CountingEnv env{2};
  LaneBook book{2};
  Recorder recorder;
};

TEST_F(LaneBookTest, EveryLaneNeedsATokenUntilItBegins) {
  EXPECT_EQ(book.need_token(), 2);
  Play(1, 7);
  EXPECT_EQ(book.need_token(), 1);
  EXPECT_FALSE(book.Plays(0));
  EXPECT_TRUE(book.Plays(1));
}

TEST_F(LaneBookTest, EndedEpisodeIsAnnouncedOnceItsLastRowIsPublished) {
  Play(0, 7);
  Play(1, 8);
  row.flags[1] = kIsLast | kTerminated;
  book.EndEpisodes(row, 12, 3, env);
  EXPECT_EQ(book.need_token(), 1);
  EXPECT_TRUE(book.HasEnded());
  EXPECT_EQ(book.Announce(12, recorder), 0U);
  EXPECT_EQ(book.Announce(13, recorder), 1U);
  EXPECT_FALSE(book.HasEnded());
  ASSERT_EQ(recorder.episodes.size(), 1U);
  EXPECT_EQ(recorder.episodes[0].token_id, 8U);
  EXPECT_EQ(recorder.episodes[0].lane, 1U);
  EXPECT_EQ(recorder.episodes[0].policy_version, 3U);
}

TEST_F(LaneBookTest, CutMarksTheRowOfLanesThatPlayAndLeavesEndedOnes) {
  Play(0, 7);
  Play(1, 8);
  row.flags[1] = kIsLast | kTerminated;
  const auto cut = book.Cut(row, env);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].id, 7U);
  EXPECT_EQ(row.flags[0], kIsLast | kTruncated);
  EXPECT_EQ(row.flags[1], kIsLast | kTerminated);
  book.EndEpisodes(row, 0, 1, env);  // the cut lane's episode is not among the ended ones
  EXPECT_EQ(book.Announce(1, recorder), 1U);
  EXPECT_EQ(recorder.episodes[0].token_id, 8U);
  EXPECT_EQ(book.need_token(), 2);
}

std::size_t AllocatedBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(LaneBookOfManyLanesTest, HoldsTwoEndedEpisodesALaneWithoutAllocating) {
  constexpr std::uint32_t kLanes = 4096;
  const RowLayout layout({.record_bytes = 16, .lanes = kLanes, .has_mask = false});
  std::vector<std::byte> memory(layout.row_bytes);
  const RowView row(layout, memory.data());
  std::fill_n(row.flags, kLanes, std::uint8_t{kIsLast});
  CountingEnv env(kLanes);
  LaneBook book(kLanes);
  const std::size_t before = AllocatedBytes();
  for (std::uint64_t number = 0; number < 2; ++number) {
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) book.Begin(lane);
    book.EndEpisodes(row, number, 1, env);
  }
  EXPECT_EQ(AllocatedBytes(), before);
  Recorder recorder;
  EXPECT_EQ(book.Announce(2, recorder), 2 * kLanes);
}

TEST_F(LaneBookTest, DropGivesEveryPlayingLanesTokenBackAndLeavesTheRow) {
  Play(1, 8);
  row.flags[1] = kIsLast;
  const auto dropped = book.Drop(env);
  ASSERT_EQ(dropped.size(), 1U);
  EXPECT_EQ(dropped[0].id, 8U);
  EXPECT_EQ(row.flags[1], kIsLast);
  EXPECT_EQ(book.need_token(), 2);
  EXPECT_TRUE(book.Drop(env).empty());
}

}  // namespace
}  // namespace tetrion
