#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <thread>

#include "lib/core/clock.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/ring_memory.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kRun = 0xABC;
constexpr std::uint64_t kSpecHash = 0x5EC;
constexpr RingSpec kSpec = {.capacity = 8, .record_bytes = 40, .spec_hash = kSpecHash};

// Writes `value` into the next record; false when the ring is full.
bool Push(RingProducer& producer, std::uint64_t value) {
  auto loan = producer.Claim();
  if (!loan.ok()) return false;
  std::memcpy(loan.record(), &value, sizeof value);
  loan.Complete();
  return true;
}

std::uint64_t ValueAt(const RingConsumer& consumer, const RingPeek& peek, std::uint32_t i) {
  std::uint64_t value;
  std::memcpy(&value, peek.records + i * consumer.stride_bytes(), sizeof value);
  return value;
}

TEST(SpscRingTest, UnpublishedRecordsAreInvisible) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  ASSERT_TRUE(Push(producer, 1));
  EXPECT_EQ(producer.completed(), 1U);
  EXPECT_EQ(producer.published(), 0U);
  EXPECT_EQ(consumer.Peek().status, RingStatus::kEmpty);
  producer.Publish();
  const RingPeek peek = consumer.Peek();
  ASSERT_EQ(peek.status, RingStatus::kOk);
  EXPECT_EQ(peek.count, 1U);
  EXPECT_EQ(ValueAt(consumer, peek, 0), 1U);
}

TEST(SpscRingTest, AbortedLoanIsClaimedAgain) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  std::byte* aborted = nullptr;
  {
    const auto loan = producer.Claim();
    aborted = loan.record();
  }
  EXPECT_EQ(producer.completed(), 0U);
  EXPECT_EQ(producer.Claim().record(), aborted);
}

TEST(SpscRingTest, RecordsAreAlignedAndFarEnoughApart) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  EXPECT_EQ(producer.stride_bytes(), 64U);
  auto first = producer.Claim();
  std::byte* const record = first.record();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record) % 64, 0U);
  first.Complete();
  EXPECT_EQ(producer.Claim().record() - record, 64);
}

TEST(SpscRingTest, AllOfTheCapacityIsUsable) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  for (std::uint64_t i = 0; i < 7; ++i) ASSERT_TRUE(Push(producer, i));
  EXPECT_EQ(producer.FreeRecords(), 1U);  // one before full
  EXPECT_TRUE(Push(producer, 7));
  EXPECT_EQ(producer.FreeRecords(), 0U);
  EXPECT_FALSE(Push(producer, 8));
  producer.Publish();
  EXPECT_EQ(consumer.Peek().count, 8U);
  consumer.Release(1);
  EXPECT_TRUE(Push(producer, 8));
  EXPECT_FALSE(Push(producer, 9));
}

// Every start cursor and every batch size: all records arrive once, in order, in runs that end at
// the wrap.
class SpscRingWrapTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SpscRingWrapTest, RunsStayInOrderAcrossTheWrapAtEveryOffset) {
  for (std::uint64_t offset = 0; offset < kSpec.capacity; ++offset) {
    for (std::uint64_t batch = 1; batch <= kSpec.capacity; ++batch) {
      RingMemory memory(kSpec);
      const std::uint64_t start = GetParam() + offset;
      RingProducer producer = RingProducer::Over(memory.get(), kSpec, start);
      RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
      std::uint64_t expected = start;
      for (int round = 0; round < 5; ++round) {
        for (std::uint64_t i = 0; i < batch; ++i) ASSERT_TRUE(Push(producer, producer.completed()));
        producer.Publish();
        while (true) {
          const RingPeek peek = consumer.Peek();
          if (peek.status == RingStatus::kEmpty) break;
          ASSERT_EQ(peek.status, RingStatus::kOk);
          ASSERT_EQ(peek.first, expected);
          ASSERT_LE((peek.first & (kSpec.capacity - 1)) + peek.count, kSpec.capacity);
          for (std::uint32_t i = 0; i < peek.count; ++i) {
            ASSERT_EQ(ValueAt(consumer, peek, i), expected++);
          }
          consumer.Release(peek.count);
        }
        ASSERT_EQ(expected, producer.published());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(StartCursors, SpscRingWrapTest,
                         ::testing::Values(std::uint64_t{0}, (std::uint64_t{1} << 32) - 1,
                                           std::numeric_limits<std::uint64_t>::max() - 11));

TEST(SpscRingTest, PeekBeyondUnreleasedRecordsFindsTheRest) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, 6);  // wraps after two records
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(Push(producer, i));
  producer.Publish();
  EXPECT_EQ(consumer.Peek().count, 2U);
  const RingPeek rest = consumer.Peek(2);
  EXPECT_EQ(rest.count, 3U);
  EXPECT_EQ(ValueAt(consumer, rest, 0), 2U);
  EXPECT_EQ(consumer.Peek(5).status, RingStatus::kEmpty);
  ASSERT_TRUE(Push(producer, 5));
  producer.Publish();
  EXPECT_EQ(consumer.Peek(5).count, 1U);
}

TEST(SpscRingTest, ClosedRingIsDrainedBeforeItEnds) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  ASSERT_TRUE(Push(producer, 1));
  EXPECT_FALSE(producer.closed());
  producer.Close();
  producer.Close();
  EXPECT_TRUE(producer.closed());
  ASSERT_EQ(consumer.Peek().status, RingStatus::kOk);
  consumer.Release(1);
  EXPECT_EQ(consumer.Peek().status, RingStatus::kClosedAndEmpty);
}

TEST(SpscRingTest, PublishRingsTheConsumersBell) {
  RingMemory memory(kSpec);
  BellBlock block = {};
  Bell bell(&block);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  producer.SetBell(bell);
  std::uint32_t armed = bell.Arm();
  producer.Publish();  // nothing new: silent
  EXPECT_EQ(bell.WakesApprox(), 0U);
  ASSERT_TRUE(Push(producer, 1));
  producer.Publish();
  EXPECT_EQ(bell.Wait(armed, 0), BellResult::kRung);
  armed = bell.Arm();
  producer.Close();
  EXPECT_EQ(bell.Wait(armed, 0), BellResult::kRung);
}

TEST(SpscRingTest, WaitForSpaceTimesOutOnAFullRingAndSeesARelease) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  EXPECT_EQ(producer.WaitForSpace(0), SpaceResult::kSpace);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(Push(producer, i));
  producer.Publish();
  EXPECT_EQ(producer.WaitForSpace(kNanosPerMilli), SpaceResult::kTimeout);
  ASSERT_EQ(consumer.Peek().status, RingStatus::kOk);
  std::thread releaser([&] { consumer.Release(1); });
  EXPECT_EQ(producer.WaitForSpace(30 * kNanosPerSecond), SpaceResult::kSpace);
  releaser.join();
}

TEST(SpscRingTest, RestartedConsumerGoesOnAtTheTail) {
  const ScratchDir scratch;
  const std::string name = RingName(kRun, 1, 2, 3);
  RingProducer producer =
      RingProducer::Create(Region::Create(scratch.path(), name, RegionKind::kRing,
                                          RingRegionBytes(kSpec), kRun, kSpecHash),
                           kSpec);
  const std::string path = producer.region()->path();
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(Push(producer, i));
  producer.Publish();
  {
    RingConsumer first = RingConsumer::Attach(path, kSpecHash, {.run_id = kRun});
    ASSERT_EQ(first.Peek().count, 6U);
    first.Release(4);
  }
  RingConsumer second = RingConsumer::Attach(path, kSpecHash);
  EXPECT_EQ(second.tail(), 4U);
  const RingPeek peek = second.Peek();
  EXPECT_EQ(peek.count, 2U);
  EXPECT_EQ(ValueAt(second, peek, 0), 4U);
  EXPECT_TRUE(second.OwnerAlive());
}

TEST(SpscRingTest, AdoptedProducerGoesOnBehindTheDeadOne) {
  RingMemory memory(kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  {
    RingProducer first = RingProducer::Over(memory.get(), kSpec);
    for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(Push(first, i));
    first.Publish();
    ASSERT_TRUE(Push(first, 99));  // never published
  }
  ASSERT_EQ(consumer.Peek().count, 6U);
  consumer.Release(2);
  std::optional<RingProducer> second = RingProducer::Adopt(memory.get(), kSpec);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->FreeRecords(), 4U);
  for (std::uint64_t i = 6; i < 10; ++i) ASSERT_TRUE(Push(*second, i));
  EXPECT_FALSE(Push(*second, 10));
  second->Publish();
  for (std::uint64_t i = 2; i < 10; ++i) {
    const RingPeek peek = consumer.Peek();
    ASSERT_EQ(peek.status, RingStatus::kOk);
    EXPECT_EQ(ValueAt(consumer, peek, 0), i);
    consumer.Release(1);
  }
}

TEST(SpscRingTest, AdoptRefusesAnotherRingAndImpossibleCursors) {
  RingMemory memory(kSpec);
  static_cast<void>(RingProducer::Over(memory.get(), kSpec));
  RingSpec other = kSpec;
  other.record_bytes = 48;
  EXPECT_FALSE(RingProducer::Adopt(memory.get(), other).has_value());
  reinterpret_cast<RingBlock*>(memory.get())->head.store(kSpec.capacity + 1);
  EXPECT_FALSE(RingProducer::Adopt(memory.get(), kSpec).has_value());
}

TEST(SpscRingTest, ReaderThatSkipsGivesNothingBack) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer releasing = RingConsumer::Over(memory.get(), kSpec);
  RingConsumer ahead = RingConsumer::Over(memory.get(), kSpec);
  for (std::uint64_t i = 0; i < 3 * kSpec.capacity; ++i) {
    ASSERT_TRUE(Push(producer, i));
    producer.Publish();
    ASSERT_EQ(ValueAt(ahead, ahead.Peek(), 0), i);
    ahead.Skip(1);
    EXPECT_EQ(ahead.Peek().status, RingStatus::kEmpty);
    if (i + 1 < kSpec.capacity) continue;
    EXPECT_EQ(producer.FreeRecords(), 0U);
    ASSERT_EQ(releasing.Peek().status, RingStatus::kOk);
    releasing.Release(1);
  }
}

TEST(SpscRingTest, OtherLayoutIsRefused) {
  const ScratchDir scratch;
  RingProducer producer =
      RingProducer::Create(Region::Create(scratch.path(), "ring", RegionKind::kRing,
                                          RingRegionBytes(kSpec), kRun, kSpecHash),
                           kSpec);
  const std::string path = producer.region()->path();
  EXPECT_EQ(ErrorOf([&] { RingConsumer::Attach(path, 1); }).code(), ExitCode::kConfig);
}

TEST(SpscRingDeathTest, MisuseIsABug) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  const auto loan = producer.Claim();
  EXPECT_DEATH(static_cast<void>(producer.Claim()), "on loan");
  EXPECT_DEATH(consumer.Release(1), "never published");
  EXPECT_DEATH(static_cast<void>(consumer.Peek(1)), "never seen");
  EXPECT_DEATH(RingMemoryBytes({.capacity = 3, .record_bytes = 8}), "power of two");
}

TEST(AnonymousRing, PassesRecordsBetweenTwoThreadsOfAProcess) {
  constexpr std::uint64_t kRecords = 1000;
  RingProducer producer = RingProducer::Create(
      Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(kSpec), kRun, kSpecHash, "a ring"),
      kSpec);
  RingConsumer consumer = RingConsumer::Beside(producer);
  EXPECT_EQ(consumer.capacity(), kSpec.capacity);
  EXPECT_EQ(consumer.record_bytes(), kSpec.record_bytes);
  EXPECT_EQ(consumer.mapping().size(), RingRegionBytes(kSpec));
  std::thread writer([&producer] {
    for (std::uint64_t i = 0; i < kRecords; ++i) {
      while (!Push(producer, i)) static_cast<void>(producer.WaitForSpace(kNanosPerMilli));
      producer.Publish();
    }
    producer.Close();
  });
  std::uint64_t next = 0;
  RingPeek peek = consumer.Peek();
  for (; peek.status != RingStatus::kClosedAndEmpty; peek = consumer.Peek()) {
    ASSERT_NE(peek.status, RingStatus::kCorrupt);
    for (std::uint32_t i = 0; i < peek.count; ++i) {
      ASSERT_EQ(ValueAt(consumer, peek, i), next);
      ++next;
    }
    consumer.Release(peek.count);
  }
  writer.join();
  EXPECT_EQ(next, kRecords);
  EXPECT_TRUE(consumer.OwnerAlive());
}

}  // namespace
}  // namespace tetrion
