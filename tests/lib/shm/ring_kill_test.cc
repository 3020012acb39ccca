#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/scratch_dir.h"

// kill -9 of a producer at each of its pause points: what was published arrives whole, nothing else
// is seen, and the ring's file can be removed.
namespace tetrion {
namespace {

constexpr RingSpec kSpec = {.capacity = 16, .record_bytes = 256, .spec_hash = 1};
constexpr int kRepetitions = 50;

enum class PausePoint { kHalfWritten, kCompleted, kPublished, kClosed };

std::byte Tag(std::uint64_t record) {
  return static_cast<std::byte>(record % 250 + 1);
}

void WriteAndPause(const std::string& dir, std::uint64_t first, PausePoint point) {
  RingProducer producer = RingProducer::Create(
      Region::Create(dir, "ring", RegionKind::kRing, RingRegionBytes(kSpec), 1, 1), kSpec, first);
  for (int i = 0; i < 5; ++i) {
    auto loan = producer.Claim();
    std::memset(loan.record(), static_cast<int>(Tag(producer.completed())), kSpec.record_bytes);
    loan.Complete();
  }
  producer.Publish();
  auto loan = producer.Claim();
  const int tag = static_cast<int>(Tag(producer.completed()));
  std::memset(loan.record(), tag, kSpec.record_bytes / 2);
  if (point == PausePoint::kHalfWritten) raise(SIGSTOP);
  std::memset(loan.record(), tag, kSpec.record_bytes);
  loan.Complete();
  if (point == PausePoint::kCompleted) raise(SIGSTOP);
  producer.Publish();
  if (point == PausePoint::kPublished) raise(SIGSTOP);
  producer.Close();
  raise(SIGSTOP);
}

class RingKillTest : public ::testing::TestWithParam<PausePoint> {};

TEST_P(RingKillTest, PublishedRecordsSurviveTheKillAndTheRestIsNeverSeen) {
  const std::uint64_t whole = GetParam() >= PausePoint::kPublished ? 6 : 5;
  for (std::uint64_t i = 0; i < kRepetitions; ++i) {
    const ScratchDir scratch;
    const std::uint64_t first = i;  // the wrap falls on every record in turn
    PausedChild actor([&] { WriteAndPause(scratch.path(), first, GetParam()); });
    const std::string path = scratch.path() + "/ring";
    RingConsumer consumer = RingConsumer::Attach(path, 1);
    ASSERT_TRUE(consumer.OwnerAlive());
    actor.Kill();
    ASSERT_FALSE(consumer.OwnerAlive());
    RingPeek peek = consumer.Peek();
    for (; peek.status == RingStatus::kOk; peek = consumer.Peek()) {
      for (std::uint32_t r = 0; r < peek.count; ++r) {
        const std::byte* record = peek.records + r * consumer.stride_bytes();
        const std::vector<std::byte> expected(kSpec.record_bytes, Tag(peek.first + r));
        ASSERT_EQ(std::memcmp(record, expected.data(), expected.size()), 0) << "torn record";
      }
      consumer.Release(peek.count);
    }
    ASSERT_EQ(peek.status,
              GetParam() == PausePoint::kClosed ? RingStatus::kClosedAndEmpty : RingStatus::kEmpty);
    ASSERT_EQ(consumer.tail(), first + whole);
    consumer.Unlink();
    ASSERT_FALSE(std::filesystem::exists(path));
  }
}

INSTANTIATE_TEST_SUITE_P(PausePoints, RingKillTest,
                         ::testing::Values(PausePoint::kHalfWritten, PausePoint::kCompleted,
                                           PausePoint::kPublished, PausePoint::kClosed));

// Killed while it waits for space in the kernel: the consumer is not disturbed and drains the ring.
TEST(RingKillTest, ProducerKilledWhileItWaitsForSpaceLeavesAFullRing) {
  const ScratchDir scratch;
  PausedChild actor([&] {
    RingProducer producer = RingProducer::Create(
        Region::Create(scratch.path(), "ring", RegionKind::kRing, RingRegionBytes(kSpec), 1, 1),
        kSpec);
    while (true) {
      auto loan = producer.Claim();
      if (!loan.ok()) break;
      loan.Complete();
    }
    producer.Publish();
    Bell(&reinterpret_cast<RingBlock*>(producer.region()->payload())->space).Arm();
    raise(SIGSTOP);
  });
  RingConsumer consumer = RingConsumer::Attach(scratch.path() + "/ring", 1);
  actor.Kill();
  ASSERT_EQ(consumer.Peek().count, 16U);
  consumer.Release(16);
  EXPECT_EQ(consumer.Peek().status, RingStatus::kEmpty);
}

}  // namespace
}  // namespace tetrion
