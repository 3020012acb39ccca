#include "services/learner/replay_source.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/run/run_config.h"

namespace tetrion::learner {
namespace {

constexpr int kSteps = 4, kWindows = 2, kStride = 4;
constexpr int kCapacity = static_cast<int>(FifoReplayRows(kSteps, kWindows, kStride));

class ReplaySourceTest : public ::testing::Test {
 protected:
  ReplaySourceTest()
      : replay_({.capacity_rows = kCapacity, .commit_stride = kStride},
                std::make_unique<FifoSelector>(1, kSteps), FifoLimiter(kWindows)),
        memory_(layout_.spec, 1, kCapacity),
        source_(replay_, memory_, kSteps, kWindows) {}

  // Pushes rows, at most `count`, until the limiter says no; returns how many went in.
  int Push(int count) {
    std::vector<std::byte> row(layout_.row_bytes);
    for (int i = 0; i < count; ++i) {
      const RowHeader header = {.row = next_, .policy_version = next_, .reserved = 0};
      std::memcpy(row.data(), &header, sizeof header);
      int pushed = 0;
      if (PushRows(replay_, memory_, 0, row.data(), 1, 0, pushed) != AcquireResult::kAcquired)
        return i;
      ++next_;
    }
    return count;
  }

  const RowLayout layout_{{.record_bytes = 16, .lanes = 1, .has_mask = false}};
  ReplayGate replay_;
  HostRows memory_;
  ReplaySource source_;
  std::uint32_t next_ = 0;
};

TEST_F(ReplaySourceTest, IsNotReadyUntilAWholeBatchIsCommitted) {
  EXPECT_EQ(source_.Next().status(), BatchStatus::kNotReady);
  ASSERT_EQ(Push(8), 8);  // one window and the beginning of another
  EXPECT_EQ(source_.Next().status(), BatchStatus::kNotReady);
  ASSERT_EQ(Push(4), 4);
  EXPECT_EQ(source_.Next().status(), BatchStatus::kReady);
}

TEST_F(ReplaySourceTest, EndsWhenItIsTold) {
  EXPECT_FALSE(source_.Ends());
  source_.End();
  EXPECT_TRUE(source_.Ends());
}

TEST_F(ReplaySourceTest, BatchesFollowEachOtherWithoutGapWhileTheWriterLapsTheRing) {
  std::uint32_t start = 0;
  for (int round = 0; round < 50; ++round) {
    Push(1000);  // up to the limiter
    const TrainBatch batch = source_.Next();
    ASSERT_EQ(batch.status(), BatchStatus::kReady);
    EXPECT_EQ(batch.steps(), kSteps);
    EXPECT_EQ(batch.lanes(), kWindows);  // windows of one lane
    std::vector<std::uint32_t> version(static_cast<std::size_t>((kSteps + 1) * kWindows));
    batch.GatherVersions(version.data());
    for (int w = 0; w < kWindows; ++w) {
      for (int t = 0; t <= kSteps; ++t) {
        EXPECT_EQ(version[static_cast<std::size_t>(t * kWindows + w)],
                  start + static_cast<std::uint32_t>(t));
      }
      start += kSteps;
    }
  }
  EXPECT_GT(next_, 10 * std::uint32_t{kCapacity});  // no lease stayed open
}

}  // namespace
}  // namespace tetrion::learner
