#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <thread>

#include "lib/core/philox.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "tests/lib/shm/ring_memory.h"
#include "tests/lib/shm/scratch_dir.h"

// What a broken or hostile peer can do to a ring: at worst it is quarantined. ASan watches the
// boundaries of the memory.
namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr RingSpec kSpec = {.capacity = 8, .record_bytes = 40, .spec_hash = 1};
constexpr std::uint64_t kStart = 100;

void PublishRecords(RingProducer& producer, int count) {
  for (int i = 0; i < count; ++i) {
    auto loan = producer.Claim();
    ASSERT_TRUE(loan.ok());
    loan.Complete();
  }
  producer.Publish();
}

struct ImpossibleHead {
  std::uint64_t head;
  const char* reason;
};

class RingQuarantineTest : public ::testing::TestWithParam<ImpossibleHead> {};

TEST_P(RingQuarantineTest, ImpossibleHeadQuarantinesForGood) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  PublishRecords(producer, 4);
  ASSERT_EQ(consumer.Peek().count, 4U);
  consumer.Release(2);  // tail 102, last head 104
  memory.block().head.store(GetParam().head);
  ASSERT_EQ(consumer.Peek().count, 2U) << "records seen before stay readable";
  EXPECT_EQ(consumer.Peek(2).status, RingStatus::kCorrupt);
  EXPECT_THAT(consumer.corrupt_reason(), HasSubstr(GetParam().reason));
  memory.block().head.store(105);
  EXPECT_EQ(consumer.Peek(2).status, RingStatus::kCorrupt) << "no way back";
  EXPECT_EQ(consumer.tail(), 102U);
}

INSTANTIATE_TEST_SUITE_P(
    Cursors, RingQuarantineTest,
    ::testing::Values(ImpossibleHead{103, "went back"}, ImpossibleHead{102, "went back"},
                      ImpossibleHead{101, "went back"},
                      ImpossibleHead{111, "more than the capacity ahead"},
                      ImpossibleHead{std::numeric_limits<std::uint64_t>::max(), "ahead"},
                      ImpossibleHead{0, "ahead"}));

TEST(RingHostileTest, FurthestPossibleHeadIsAccepted) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  memory.block().head.store(kStart + 8);
  EXPECT_EQ(consumer.Peek().status, RingStatus::kOk);
}

TEST(RingHostileTest, ImpossibleTailStopsTheProducerInsteadOfOverwriting) {
  for (const std::uint64_t tail : {kStart - 1, kStart + 9, std::uint64_t{0}}) {
    RingMemory memory(kSpec);
    RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
    PublishRecords(producer, 8);
    memory.block().tail.store(tail);
    EXPECT_FALSE(producer.Claim().ok());
    EXPECT_TRUE(producer.corrupt());
    EXPECT_EQ(producer.WaitForSpace(1'000'000), SpaceResult::kTimeout);
    memory.block().tail.store(kStart + 8);
    EXPECT_FALSE(producer.Claim().ok()) << "no way back";
  }
}

// Who counts released records takes the last possible number, before the producer looks for space.
TEST(RingHostileTest, ImpossibleTailReleasesNothing) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
  PublishRecords(producer, 4);
  memory.block().tail.store(kStart + 2);
  ASSERT_EQ(producer.FreeRecords(), 6U);
  EXPECT_EQ(producer.Released(), kStart + 2);
  for (const std::uint64_t tail : {kStart + 1, kStart + 5, std::uint64_t{0}}) {
    memory.block().tail.store(tail);
    EXPECT_EQ(producer.Released(), kStart + 2) << tail;
  }
  memory.block().tail.store(kStart + 4);
  EXPECT_EQ(producer.Released(), kStart + 4);
}

TEST(RingHostileTest, TailThatGoesBackStopsTheProducer) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
  PublishRecords(producer, 8);
  memory.block().tail.store(kStart + 8);
  ASSERT_EQ(producer.FreeRecords(), 8U);
  memory.block().tail.store(kStart + 3);
  EXPECT_EQ(producer.FreeRecords(), 0U);
  EXPECT_TRUE(producer.corrupt());
}

// A thread flips random bits of the whole first page while the consumer polls; the consumer touches
// every byte it is shown.
TEST(RingHostileTest, FlippedPageNeverLeadsOutOfBounds) {
  constexpr int kRounds = 200;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    RingMemory memory(kSpec);
    RingProducer producer = RingProducer::Over(memory.get(), kSpec, kStart);
    RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
    PublishRecords(producer, 3);
    std::atomic<bool> done{false};
    std::thread adversary([&] {
      auto* words = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.get());
      for (std::uint32_t i = 0; !done.load(); ++i) {
        const PhiloxBlock draw = PhiloxDraw(7, round, i, PhiloxPurpose::kSampler);
        // Small changes of a cursor are the dangerous ones: mostly low bits.
        words[16 * (draw.word[0] % 5)].fetch_xor(std::uint64_t{1} << (draw.word[1] % 6));
        words[draw.word[2] % 80].store(draw.word[3]);
      }
    });
    std::uint64_t last = kStart;
    std::uint64_t sum = 0;
    for (int i = 0; i < 500; ++i) {
      const RingPeek peek = consumer.Peek();
      if (peek.status != RingStatus::kOk) continue;
      ASSERT_LE(peek.count, kSpec.capacity);
      ASSERT_EQ(peek.first, last);  // nothing skipped, never backwards
      for (std::uint64_t b = 0; b < peek.count * consumer.stride_bytes(); ++b) {
        sum += std::to_integer<std::uint64_t>(peek.records[b]);
      }
      consumer.Release(peek.count);
      last += peek.count;
    }
    done.store(true);
    adversary.join();
    ASSERT_EQ(sum, 0U) << "read outside the records, which are zero";
    ASSERT_EQ(consumer.tail(), last);
  }
}

// Attach over garbage: refuses, or yields a ring that stays within its file.
TEST(RingHostileTest, AttachOverAMutatedFileRefusesOrStaysInside) {
  const ScratchDir scratch;
  RingProducer producer = RingProducer::Create(
      Region::Create(scratch.path(), "ring", RegionKind::kRing, RingRegionBytes(kSpec), 1, 1),
      kSpec, kStart);
  PublishRecords(producer, 5);
  Region& region = *producer.region();
  std::vector<std::byte> clean(region.data(), region.data() + region.size());
  int refused = 0;
  int attached = 0;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    std::memcpy(region.data(), clean.data(), clean.size());
    const PhiloxBlock draw = PhiloxDraw(8, 0, i, PhiloxPurpose::kSampler);
    const bool in_ring = draw.word[0] % 2 == 0;
    const std::size_t at = (in_ring ? 4096 + draw.word[1] % 264 : draw.word[1] % 48);
    region.data()[at] ^= static_cast<std::byte>(1U << (draw.word[2] % 8));
    try {
      RingConsumer consumer = RingConsumer::Attach(region.path(), 1);
      ++attached;
      for (int poll = 0; poll < 4; ++poll) {
        const RingPeek peek = consumer.Peek();
        if (peek.status != RingStatus::kOk) continue;
        ASSERT_GE(peek.records, consumer.region()->data());
        ASSERT_LE(peek.records + peek.count * consumer.stride_bytes(),
                  consumer.region()->data() + consumer.region()->size());
        consumer.Release(peek.count);
      }
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(attached, 500);
}

}  // namespace
}  // namespace tetrion
