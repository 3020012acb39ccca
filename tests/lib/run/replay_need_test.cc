#include "lib/run/replay_need.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

// What a shard can surely draw from: its rows without those of the chunk that is being written.
std::int64_t DrawableItems(std::int64_t rows, int window, int lanes, int commit_stride) {
  return (rows - commit_stride - window) * lanes;
}

TEST(ReplayNeedTest, OneShardHoldsWhatUniformSelectionBeginsWithWhileAChunkIsWritten) {
  for (const int window : {2, 31, 64}) {
    for (const int batch : {1, 16}) {
      for (const int lanes : {1, 3, 64, 4096}) {
        for (const int stride : {1, 8, 256}) {
          const std::int64_t rows = UniformReplayRows(window, batch, lanes, stride);
          EXPECT_EQ(rows % stride, 0);
          EXPECT_GE(rows, 2 * stride);
          EXPECT_GE(DrawableItems(rows, window, lanes, stride), UniformFirstItems(window, batch));
          const std::int64_t fewer = rows - stride;
          EXPECT_TRUE(fewer < 2 * stride || DrawableItems(fewer, window, lanes, stride) <
                                                UniformFirstItems(window, batch));
        }
      }
    }
  }
}

TEST(ReplayNeedTest, UsualReplayIsNeverSmallerThanTheLeastAndSharedByAllSlots) {
  RunConfig config;
  config.window = 64;
  config.batch_windows = 16;
  config.lanes = 4096;
  config.max_workers = 256;
  const ReplayNeed crowded = ReplayNeedOf(config.dreamer, config);
  EXPECT_EQ(crowded.usual, crowded.least);
  config.lanes = 4;
  config.max_workers = 8;
  EXPECT_EQ(ReplayNeedOf(config.dreamer, config).usual, (1 << 18) / 32);
  const ReplayNeed fifo = ReplayNeedOf(config.vtrace, config);
  EXPECT_EQ(fifo.usual, fifo.least);
}

TEST(ReplayNeedTest, DreamersWindowFitsTheReplayWithItsContextRow) {
  const DreamerSettings settings;
  EXPECT_EQ(settings.Misfit(/*window=*/15, /*capacity_rows=*/16), "");
  EXPECT_NE(settings.Misfit(16, 16), "");
  EXPECT_EQ(settings.Misfit(2, 16), "");
  EXPECT_NE(settings.Misfit(1, 16), "");
}

}  // namespace
}  // namespace tetrion
