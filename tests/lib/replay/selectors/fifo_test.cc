#include "lib/replay/selectors/fifo.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

std::vector<Window> DrawAll(FifoSelector& selector) {
  std::vector<Window> out;
  while (selector.Draw(1, {}, out).ready) {
  }
  return out;
}

TEST(FifoSelectorTest, WindowNeedsOneRowMoreThanItsTransitions) {
  FifoSelector selector(1, 4);
  selector.OnCommit(0, 4);
  EXPECT_EQ(selector.counts().size, 0);
  selector.OnCommit(0, 5);
  EXPECT_EQ(selector.counts().size, 1);
}

TEST(FifoSelectorTest, ConsecutiveWindowsOverlapByOneRow) {
  FifoSelector selector(1, 4);
  selector.OnCommit(0, 14);
  const std::vector<Window> windows = DrawAll(selector);
  ASSERT_EQ(windows.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(windows[k].start, 4 * k);
}

TEST(FifoSelectorTest, DeliversOldestFirstAcrossShardsAndEachOnce) {
  FifoSelector selector(2, 4);
  selector.OnCommit(1, 5);
  selector.OnCommit(0, 5);
  selector.OnCommit(1, 9);
  std::vector<Window> out;
  ASSERT_TRUE(selector.Draw(2, {}, out).ready);
  EXPECT_EQ(out[0].shard, 1);
  EXPECT_EQ(out[1].shard, 0);
  const DrawResult third = selector.Draw(2, {}, out);
  EXPECT_FALSE(third.ready);
  EXPECT_EQ(third.have, 1);
  EXPECT_EQ(third.need, 2);
  EXPECT_EQ(out.size(), 2U);  // an unready draw takes nothing
}

// The limiter, walked along the number line of undelivered windows.
TEST(FifoSelectorTest, LimiterAllowsInsertsBelowTwiceTheBatch) {
  FifoSelector selector(1, 1);
  const Limiter limiter = FifoLimiter(3);
  for (std::uint64_t committed = 0; committed <= 6; ++committed) {
    selector.OnCommit(0, committed + 1);
    EXPECT_EQ(selector.counts().size, static_cast<std::int64_t>(committed));
    EXPECT_EQ(limiter.MayInsert(selector.counts()), committed < 6) << committed;
  }
  std::vector<Window> out;
  ASSERT_TRUE(selector.Draw(1, {}, out).ready);
  EXPECT_TRUE(limiter.MayInsert(selector.counts()));
}

TEST(FifoSelectorTest, NewGenerationStartsAtItsOwnBaseAndLosesNoWindowOfTheOldOne) {
  FifoSelector selector(2, 4);
  selector.OnCommit(0, 13);
  selector.OnCommit(1, 5);
  selector.OnGeneration(0, 13);
  EXPECT_EQ(selector.counts().size, 4);
  EXPECT_EQ(selector.counts().lost, 0);
  selector.OnCommit(0, 17);
  EXPECT_EQ(selector.counts().size, 4);  // rows 13..16: one short
  selector.OnCommit(0, 18);
  const std::vector<Window> windows = DrawAll(selector);
  ASSERT_EQ(windows.size(), 5U);
  EXPECT_EQ(windows[2].start, 8U);
  EXPECT_EQ(windows[4].start, 13U);
}

TEST(FifoSelectorTest, OverwrittenWindowsAreDroppedAndCounted) {
  FifoSelector selector(2, 2);
  selector.OnCommit(0, 7);
  selector.OnCommit(1, 3);
  selector.OnReclaim(0, 3);
  EXPECT_EQ(selector.counts().lost, 2);
  const std::vector<Window> windows = DrawAll(selector);
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].shard, 0);
  EXPECT_EQ(windows[0].start, 4U);
  EXPECT_EQ(selector.counts().inserted, selector.counts().drawn);
}

}  // namespace
}  // namespace tetrion
