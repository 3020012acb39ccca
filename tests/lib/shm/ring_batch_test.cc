#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "tests/lib/shm/ring_memory.h"

// Runs of records: ClaimMany, Complete(n), Peek and Release(n) against a queue.
namespace tetrion {
namespace {

constexpr RingSpec kSpec = {.capacity = 8, .record_bytes = 40, .spec_hash = 1};
constexpr std::uint64_t kNearWrap = std::numeric_limits<std::uint64_t>::max() - 4;

// Every word of a record is its number: a record written at another's place shows.
void Fill(std::byte* record, std::uint64_t number) {
  for (std::size_t w = 0; w < 5; ++w) std::memcpy(record + 8 * w, &number, 8);
}

bool Holds(const std::byte* record, std::uint64_t number) {
  for (std::size_t w = 0; w < 5; ++w) {
    if (std::memcmp(record + 8 * w, &number, 8) != 0) return false;
  }
  return true;
}

// Claims, fills and completes up to n records; how many.
std::uint32_t Write(RingProducer& producer, std::uint32_t n) {
  auto loan = producer.ClaimMany(n);
  const std::uint64_t first = producer.completed();
  for (std::uint32_t i = 0; i < loan.count(); ++i) {
    Fill(loan.record() + i * producer.stride_bytes(), first + i);
  }
  const std::uint32_t count = loan.count();
  if (loan.ok()) loan.Complete();
  return count;
}

TEST(RingBatchTest, RunEndsWhereTheMemoryEnds) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, 6);
  EXPECT_EQ(Write(producer, 5), 2U);
  auto rest = producer.ClaimMany(5);
  EXPECT_EQ(rest.count(), 5U);
  EXPECT_EQ(rest.record(), memory.get() + kRingRecordsOffset);
}

TEST(RingBatchTest, RunIsAsLongAsTheSpaceThatIsLeft) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  EXPECT_EQ(Write(producer, 6), 6U);
  EXPECT_EQ(Write(producer, 100), 2U);
  EXPECT_FALSE(producer.ClaimMany(1).ok());
  EXPECT_EQ(producer.ClaimMany(1).count(), 0U);
  producer.Publish();
  ASSERT_EQ(consumer.Peek().count, 8U);
  consumer.Release(3);
  EXPECT_EQ(Write(producer, 100), 3U) << "space behind a stale look at the tail is found";
}

TEST(RingBatchTest, RestOfAPartlyCompletedRunIsClaimedAgain) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  auto loan = producer.ClaimMany(4);
  std::byte* const second = loan.record() + producer.stride_bytes();
  loan.Complete(1);
  EXPECT_EQ(producer.completed(), 1U);
  EXPECT_EQ(producer.ClaimMany(2).record(), second);
  producer.ClaimMany(3).Complete(0);
  EXPECT_EQ(producer.completed(), 1U);
}

TEST(RingBatchTest, ImpossibleTailGrantsNoRun) {
  for (const std::uint64_t tail : {std::uint64_t{99}, std::uint64_t{109}, std::uint64_t{0}}) {
    RingMemory memory(kSpec);
    RingProducer producer = RingProducer::Over(memory.get(), kSpec, 100);
    ASSERT_EQ(Write(producer, 4) + Write(producer, 4), 8U);
    producer.Publish();
    memory.block().tail.store(tail);
    EXPECT_FALSE(producer.ClaimMany(8).ok());
    EXPECT_TRUE(producer.corrupt());
    memory.block().tail.store(108);
    EXPECT_FALSE(producer.ClaimMany(1).ok()) << "no way back";
  }
}

TEST(RingBatchTest, TailBeyondWhatWasPublishedStopsAProducerThatIsNotFull) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, 96);
  ASSERT_EQ(Write(producer, 2), 2U);
  producer.Publish();
  ASSERT_EQ(Write(producer, 2), 2U);
  memory.block().tail.store(99);  // one of the records not yet published
  EXPECT_EQ(producer.ClaimMany(4).count(), 4U) << "the tail seen before is enough: no look";
  EXPECT_FALSE(producer.ClaimMany(5).ok());
  EXPECT_TRUE(producer.corrupt());
}

TEST(RingBatchDeathTest, MisuseIsABug) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  EXPECT_DEATH(static_cast<void>(producer.ClaimMany(0)), "no record");
  auto loan = producer.ClaimMany(3);
  EXPECT_DEATH(loan.Complete(4), "more records than");
  EXPECT_DEATH(static_cast<void>(producer.ClaimMany(1)), "on loan");
}

// A queue of what is written, and of what of it is visible.
struct Model {
  std::uint64_t head;
  std::uint64_t pending = 0;          // completed, not published
  std::deque<std::uint64_t> visible;  // published, not released
  std::uint64_t Free() const { return kSpec.capacity - pending - visible.size(); }
  std::uint64_t ToWrap() const { return kSpec.capacity - (head & (kSpec.capacity - 1)); }
};

// Choices of one play.
class Chance {
 public:
  explicit Chance(std::uint32_t play) : play_(play) {}
  // 0 to below - 1.
  std::uint32_t Below(std::uint32_t below) {
    return PhiloxDraw(9, play_, draws_++, PhiloxPurpose::kSampler).word[0] % below;
  }

 private:
  std::uint32_t play_;
  std::uint32_t draws_ = 0;
};

void ProducerMove(RingProducer& producer, Model& model, Chance& chance) {
  const auto wanted = 1 + chance.Below(11);
  auto loan = producer.ClaimMany(wanted);
  const std::uint64_t granted = std::min({std::uint64_t{wanted}, model.Free(), model.ToWrap()});
  ASSERT_EQ(loan.count(), granted);
  ASSERT_EQ(loan.ok(), granted > 0);
  if (!loan.ok()) return;
  const auto written = chance.Below(loan.count() + 1);
  for (std::uint32_t i = 0; i < loan.count();
       ++i) {  // beyond `written` too: it is ours to scribble
    Fill(loan.record() + i * producer.stride_bytes(), model.head + i);
  }
  loan.Complete(written);
  model.head += written;
  model.pending += written;
}

void ConsumerMove(RingConsumer& consumer, Model& model, Chance& chance) {
  const RingPeek peek = consumer.Peek();
  ASSERT_EQ(peek.status == RingStatus::kOk, !model.visible.empty());
  if (peek.status != RingStatus::kOk) return;
  ASSERT_LE(peek.count, model.visible.size());
  for (std::uint32_t i = 0; i < peek.count; ++i) {
    ASSERT_TRUE(Holds(peek.records + i * consumer.stride_bytes(), model.visible[i]));
  }
  const auto n = chance.Below(peek.count + 1);
  consumer.Release(n);
  model.visible.erase(model.visible.begin(), model.visible.begin() + n);
}

void Play(std::uint64_t start, Chance& chance) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, start);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  Model model{.head = start};
  for (int move = 0; move < 60; ++move) {
    const std::uint32_t kind = chance.Below(3);
    if (kind == 0) {
      ASSERT_NO_FATAL_FAILURE(ProducerMove(producer, model, chance)) << "move " << move;
    } else if (kind == 1) {
      producer.Publish();
      while (model.pending > 0) model.visible.push_back(model.head - model.pending--);
    } else {
      ASSERT_NO_FATAL_FAILURE(ConsumerMove(consumer, model, chance)) << "move " << move;
    }
  }
}

TEST(RingBatchTest, AnySequenceOfMovesBehavesLikeAQueue) {
  for (const std::uint64_t start :
       {std::uint64_t{0}, std::uint64_t{5}, kNearWrap, (std::uint64_t{1} << 32) - 3}) {
    for (std::uint32_t play = 0; play < 500; ++play) {
      Chance chance(play);
      ASSERT_NO_FATAL_FAILURE(Play(start, chance)) << "start " << start << ", play " << play;
    }
  }
}

// Two threads, runs of every length: each record arrives once, whole and in order. ThreadSanitizer
// sees whether a run is written while it is read.
TEST(RingBatchStressTest, RunsArriveWholeAndInOrder) {
  constexpr std::uint64_t kRecords = 200'000;
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, kNearWrap);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
  std::thread writer([&] {
    std::uint32_t length = 1;
    for (std::uint64_t written = 0; written < kRecords;) {
      length = length % 8 + 1;
      const auto left =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kRecords - written));
      const std::uint32_t count = Write(producer, left);
      producer.Publish();
      written += count;
      if (count == 0) static_cast<void>(producer.WaitForSpace(kNanosPerSecond));
    }
    producer.Close();
  });
  std::uint64_t next = kNearWrap;
  for (RingPeek peek = consumer.Peek(); peek.status != RingStatus::kClosedAndEmpty;
       peek = consumer.Peek()) {
    if (peek.status == RingStatus::kEmpty) std::this_thread::yield();
    bool whole = true;
    for (std::uint32_t i = 0; i < peek.count; ++i) {
      whole = whole && Holds(peek.records + i * consumer.stride_bytes(), next++);
    }
    EXPECT_TRUE(whole);
    if (peek.status == RingStatus::kCorrupt || !whole) break;
    consumer.Release(peek.count);
  }
  writer.join();
  EXPECT_EQ(next - kNearWrap, kRecords);
}

}  // namespace
}  // namespace tetrion
