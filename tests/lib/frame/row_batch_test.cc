#include "lib/frame/row_batch.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

constexpr RowSpec kSpec = {.record_bytes = 8, .lanes = 3, .has_mask = true};

// A row whose every cell says which row and lane it is.
std::vector<std::byte> TaggedRow(const RowLayout& layout, int row) {
  std::vector<std::byte> bytes(layout.row_bytes);
  const RowView view(layout, bytes.data());
  view.header->row = static_cast<std::uint64_t>(row);
  view.header->policy_version = static_cast<std::uint32_t>(100 + row);
  for (int lane = 0; lane < 3; ++lane) {
    const int tag = row * 10 + lane;
    view.record[lane * 8] = static_cast<std::byte>(tag);
    view.action[lane] = tag;
    view.log_prob[lane] = static_cast<float>(-tag);
    view.mask[lane] = static_cast<std::uint64_t>(tag) << 40;
    view.reward[lane] = static_cast<float>(tag) * 0.5F;
    view.flags[lane] = 0;
    view.cont[lane] = 1.0F;
  }
  return bytes;
}

TEST(RowBatchTest, WindowsLieSideBySideTimeMajor) {
  const RowLayout layout(kSpec);
  RowBatch batch(kSpec, /*steps=*/2, /*windows=*/2);
  ASSERT_EQ(batch.lanes, 6);
  for (int window = 0; window < 2; ++window) {
    for (int t = 0; t <= 2; ++t)
      batch.CopyRow(layout, TaggedRow(layout, window * 3 + t).data(), t, window);
  }
  for (int t = 0; t <= 2; ++t) {
    for (int lane = 0; lane < 6; ++lane) {
      const int tag = ((lane / 3) * 3 + t) * 10 + lane % 3;
      const auto cell = static_cast<std::size_t>(t * 6 + lane);
      EXPECT_EQ(batch.action[cell], tag);
      EXPECT_EQ(batch.log_prob[cell], static_cast<float>(-tag));
      EXPECT_EQ(batch.mask[cell], static_cast<std::uint64_t>(tag) << 40);
      EXPECT_EQ(batch.record[cell * 8], static_cast<std::byte>(tag));
    }
  }
  EXPECT_EQ(batch.policy_version, (std::vector<std::uint32_t>{100, 103, 101, 104, 102, 105}));
}

TEST(RowBatchTest, CutEpisodeBecomesLastWithoutBecomingTerminal) {
  RowBatch batch(kSpec, 2, 1);
  batch.flags.assign(9, 0);
  batch.cont.assign(9, 1.0F);
  batch.flags[1 * 3 + 2] = kIsFirst;  // lane 2 restarts at t = 1 without an is_last at t = 0
  batch.MarkCutEpisodes();
  EXPECT_EQ(batch.flags[0 * 3 + 2], kIsLast);
  EXPECT_EQ(batch.cont[0 * 3 + 2], 1.0F);
  EXPECT_EQ(batch.flags[0 * 3 + 1], 0);
  EXPECT_EQ(batch.flags[2 * 3 + 2], 0);
}

}  // namespace
}  // namespace tetrion
