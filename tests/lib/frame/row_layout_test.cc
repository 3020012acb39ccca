#include "lib/frame/row_layout.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tetrion {
namespace {

// Golden offsets: rings on disk, replay and CUDA kernels all depend on them. When this test has to
// change, kRowLayoutVersion has to change with it.
TEST(RowLayoutTest, GoldenOffsetsOfACartPoleRow) {
  const RowLayout layout({.record_bytes = 16, .lanes = 16, .has_mask = false});
  EXPECT_EQ(layout.header, 0U);
  EXPECT_EQ(layout.record, 64U);
  EXPECT_EQ(layout.action, 320U);
  EXPECT_EQ(layout.log_prob, 384U);
  EXPECT_EQ(layout.reward, 448U);
  EXPECT_EQ(layout.flags, 512U);
  EXPECT_EQ(layout.cont, 576U);
  EXPECT_EQ(layout.episode_id, 640U);
  EXPECT_EQ(layout.row_bytes, 704U);
  EXPECT_EQ(kRowLayoutVersion, 1U);
}

TEST(RowLayoutTest, GoldenOffsetsOfAPlacementRow) {
  const RowLayout layout({.record_bytes = 64, .lanes = 65, .has_mask = true});
  EXPECT_EQ(layout.record, 64U);
  EXPECT_EQ(layout.action, 64U + 65 * 64);
  EXPECT_EQ(layout.log_prob, 4224U + 320);
  EXPECT_EQ(layout.mask, 4544U + 320);
  EXPECT_EQ(layout.reward, 4864U + 576);
  EXPECT_EQ(layout.flags, 5440U + 320);
  EXPECT_EQ(layout.cont, 5760U + 128);
  EXPECT_EQ(layout.episode_id, 5888U + 320);
  EXPECT_EQ(layout.row_bytes, 6208U + 320);
}

TEST(RowLayoutTest, ColumnsAreAlignedAndDisjointForEveryLaneCount) {
  for (std::uint32_t lanes = 1; lanes <= 257; ++lanes) {
    const RowLayout layout({.record_bytes = 24, .lanes = lanes, .has_mask = lanes % 2 == 0});
    const std::vector<std::pair<std::size_t, std::size_t>> columns = {
        {layout.header, 16},
        {layout.record, 24U * lanes},
        {layout.action, 4U * lanes},
        {layout.log_prob, 4U * lanes},
        {layout.mask, layout.spec.has_mask ? 8U * lanes : 0U},
        {layout.reward, 4U * lanes},
        {layout.flags, lanes},
        {layout.cont, 4U * lanes},
        {layout.episode_id, 4U * lanes}};
    std::size_t end = 0;
    for (const auto& [offset, bytes] : columns) {
      ASSERT_EQ(offset % 64, 0U) << lanes;
      ASSERT_GE(offset, end) << lanes;
      end = offset + bytes;
    }
    ASSERT_LE(end, layout.row_bytes);
    ASSERT_EQ(layout.row_bytes % 64, 0U);
  }
}

TEST(RowLayoutTest, HashTellsLayoutsApart) {
  const RowLayout base({.record_bytes = 64, .lanes = 64, .has_mask = true});
  EXPECT_EQ(base.Hash(), RowLayout({.record_bytes = 64, .lanes = 64, .has_mask = true}).Hash());
  EXPECT_NE(base.Hash(), RowLayout({.record_bytes = 64, .lanes = 64, .has_mask = false}).Hash());
  EXPECT_NE(base.Hash(), RowLayout({.record_bytes = 64, .lanes = 65, .has_mask = true}).Hash());
  EXPECT_NE(base.Hash(), RowLayout({.record_bytes = 16, .lanes = 64, .has_mask = true}).Hash());
}

TEST(RowLayoutDeathTest, RowWithoutLanesIsABug) {
  EXPECT_DEATH(RowLayout({.record_bytes = 16, .lanes = 0, .has_mask = false}), "lanes");
}

}  // namespace
}  // namespace tetrion
