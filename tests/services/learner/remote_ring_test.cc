#include "services/learner/remote_ring.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tetrion::learner {
namespace {

constexpr RingSpec kSpec = {.capacity = 4, .record_bytes = 64, .spec_hash = 1};

class RemoteRingTest : public ::testing::Test {
 protected:
  void Write(int rows) {
    for (int i = 0; i < rows; ++i) {
      auto loan = stream_->producer.Claim();
      ASSERT_TRUE(loan.ok());
      std::memset(loan.record(), 7, kSpec.record_bytes);
      loan.Complete();
    }
    stream_->producer.Publish();
  }

  const std::shared_ptr<RemoteStream> stream_ = std::make_shared<RemoteStream>(
      RingProducer::Create(Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(kSpec), 1,
                                                   kSpec.spec_hash, "ring"),
                           kSpec, /*first=*/10));
  RemoteRing ring_{{.address = "remote:0000000000000001.0"}, stream_};
};

TEST_F(RemoteRingTest, ShowsPublishedRowsUntilTheyAreReleased) {
  EXPECT_EQ(ring_.next_row(), 10U);
  EXPECT_EQ(ring_.Peek().state, SourceState::kNone);
  EXPECT_FALSE(ring_.HasNews());
  Write(3);
  EXPECT_TRUE(ring_.HasNews());
  const SourceRows rows = ring_.Peek();
  ASSERT_EQ(rows.state, SourceState::kRows);
  EXPECT_EQ(rows.first, 10U);
  EXPECT_EQ(rows.count, 2U) << "up to the end of the memory";
  EXPECT_EQ(rows.rows[0], std::byte{7});
  EXPECT_EQ(ring_.backlog_rows(), 3U);
  ring_.Release(2);
  EXPECT_EQ(ring_.Peek().count, 1U);
  EXPECT_EQ(stream_->producer.FreeRecords(), 3U);
  EXPECT_EQ(ring_.capacity_rows(), 4U);
  EXPECT_GE(ring_.memory().size(), RingRegionBytes(kSpec)) << "a device may copy out of it";
}

TEST_F(RemoteRingTest, EndsClosedOrDeadOnlyBehindItsLastRow) {
  Write(1);
  stream_->silent = true;
  EXPECT_TRUE(ring_.HasNews());
  EXPECT_EQ(ring_.Peek().state, SourceState::kRows);
  ring_.Release(1);
  EXPECT_EQ(ring_.Peek().state, SourceState::kOwnerDead);
  stream_->producer.Close();
  EXPECT_EQ(ring_.Peek().state, SourceState::kClosed);
  EXPECT_TRUE(ring_.HasNews());
}

TEST_F(RemoteRingTest, BrokenStreamIsUnusableAtOnceAndSaysWhy) {
  Write(1);
  stream_->problem = "a batch has no rows";
  stream_->broken = true;
  EXPECT_TRUE(ring_.HasNews());
  EXPECT_EQ(ring_.Peek().state, SourceState::kUnusable);
  EXPECT_EQ(ring_.problem(), "a batch has no rows");
}

TEST_F(RemoteRingTest, RemovalTellsTheRowsThreadAndLeavesTheMemoryUntilBothAreGone) {
  EXPECT_FALSE(stream_->ended.load());
  EXPECT_TRUE(ring_.TryRemove());
  EXPECT_TRUE(stream_->ended.load());
  ring_.Remove();
  Write(1);
  EXPECT_EQ(ring_.Peek().count, 1U);
}

}  // namespace
}  // namespace tetrion::learner
