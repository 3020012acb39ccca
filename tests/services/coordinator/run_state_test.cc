#include "services/coordinator/run_state.h"

#include <gtest/gtest.h>

namespace tetrion::coordinator {
namespace {

TEST(VersionBlocksTest, BlockLastsFromOneHeartbeatToTheNextHoweverRareTheyAre) {
  VersionBlocks blocks(0, 0, /*heartbeat_ms=*/59'001);
  blocks.Begin();
  EXPECT_EQ(blocks.limit(), 60 * VersionBlocks::kBlock);
  EXPECT_FALSE(blocks.NeedsMore(30 * VersionBlocks::kBlock));
  EXPECT_TRUE(blocks.NeedsMore(30 * VersionBlocks::kBlock + 1));
}

TEST(VersionBlocksTest, VersionsThatAreUsedUpDoNotBeginAnew) {
  const std::uint32_t last = std::numeric_limits<std::uint32_t>::max();
  VersionBlocks blocks(last - 2 * VersionBlocks::kBlock, last - 2 * VersionBlocks::kBlock);
  blocks.Begin();
  EXPECT_EQ(blocks.limit(), last - VersionBlocks::kBlock);
  blocks.PersistedBy(1);
  EXPECT_TRUE(blocks.Extend(1));
  EXPECT_EQ(blocks.limit(), last);
  blocks.PersistedBy(2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(blocks.Extend(2));
    EXPECT_EQ(blocks.limit(), last);
  }
  blocks.Begin();  // a learner that cannot publish
  EXPECT_EQ(blocks.first(), last);
  EXPECT_EQ(blocks.limit(), last);
}

}  // namespace
}  // namespace tetrion::coordinator
