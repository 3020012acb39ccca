#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/ring_memory.h"
#include "tests/lib/shm/scratch_dir.h"

// Property: every record published arrives exactly once, in order and whole, whatever the two
// sides' rhythm, and neither side sleeps through its wake-up. Each record is filled with words that
// follow from its number, so that a torn or stale one contradicts itself. Runs under TSan, which in
// addition must find every record's bytes ordered by the cursors; for its sake records are written
// and read as words, since it does not see the copies that the compiler expands inline. The waits
// are long: a lost wake-up does not fail by slowness but as a time-out that the counterpart's
// progress contradicts, and ends the test.
namespace tetrion {
namespace {

constexpr std::int64_t kLongNs = 10 * kNanosPerSecond;
constexpr std::uint64_t kWords = 8;

struct StressCase {
  std::uint64_t capacity;
  std::uint32_t max_batch;
  std::uint64_t records;
};

std::uint64_t WordOf(std::uint64_t number, std::uint64_t w) {
  return number * 0x9E3779B97F4A7C15 + w;
}

void Fill(std::byte* record, std::uint64_t number) {
  auto* words = reinterpret_cast<std::uint64_t*>(record);
  for (std::uint64_t w = 0; w < kWords; ++w) words[w] = WordOf(number, w);
}

bool Whole(const std::byte* record, std::uint64_t number) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(record);
  for (std::uint64_t w = 0; w < kWords; ++w) {
    if (words[w] != WordOf(number, w)) return false;
  }
  return true;
}

// True when the bell is rung before patience ends: a sleeper that nobody wakes also finds the bell
// rung, but not earlier. The same for space.
bool IsRung(Bell& bell, std::uint32_t armed) {
  const Deadline patience(MonotonicClock::Get(), kLongNs);
  return bell.Wait(armed, kLongNs) == BellResult::kRung && !patience.Passed();
}

bool FindsSpace(RingProducer& producer) {
  const Deadline patience(MonotonicClock::Get(), kLongNs);
  return producer.WaitForSpace(kLongNs) == SpaceResult::kSpace && !patience.Passed();
}

// Publishes `records` records in random batches and closes the ring; false, and the ring stays
// open, when a wait for space took too long.
bool Produce(RingProducer& producer, std::uint32_t max_batch, std::uint64_t records,
             std::uint64_t seed) {
  const std::uint64_t end = producer.completed() + records;
  for (std::uint32_t step = 0; producer.completed() != end; ++step) {
    const PhiloxBlock draw = PhiloxDraw(seed, 0, step, PhiloxPurpose::kSampler);
    const std::uint32_t batch = 1 + BoundedDraw(draw.word[0], max_batch);
    for (std::uint32_t i = 0; i < batch && producer.completed() != end; ++i) {
      auto loan = producer.Claim();
      if (!loan.ok()) break;
      Fill(loan.record(), producer.completed());
      if (draw.word[1] % 16 == 0) break;  // an aborted loan is written again later
      loan.Complete();
    }
    producer.Publish();
    if (producer.FreeRecords() == 0 && !FindsSpace(producer)) return false;
    if (draw.word[2] % 64 == 0) std::this_thread::yield();
  }
  producer.Close();
  return true;
}

class RingStressTest : public ::testing::TestWithParam<StressCase> {};

TEST_P(RingStressTest, EveryRecordArrivesOnceInOrderAndWhole) {
  const StressCase& p = GetParam();
  const RingSpec spec = {.capacity = p.capacity, .record_bytes = 8 * kWords, .spec_hash = 1};
  RingMemory memory(spec);
  BellBlock block = {};
  const std::uint64_t first = ~std::uint64_t{0} - p.records / 2;  // wraps u64 on the way
  RingProducer producer = RingProducer::Over(memory.get(), spec, first);
  producer.SetBell(Bell(&block));
  RingConsumer consumer = RingConsumer::Over(memory.get(), spec);
  bool produced = false;
  std::thread thread([&] { produced = Produce(producer, p.max_batch, p.records, p.capacity); });

  Bell bell(&block);
  std::uint64_t expected = first;
  int lost_wake_ups = 0;
  int torn = 0;
  while (lost_wake_ups == 0) {
    RingPeek peek = consumer.Peek();
    if (peek.status == RingStatus::kEmpty) {
      const std::uint32_t armed = bell.Arm();
      peek = consumer.Peek();
      if (peek.status != RingStatus::kEmpty) {
        bell.Disarm(armed);
      } else if (!IsRung(bell, armed)) {
        ++lost_wake_ups;
      }
    }
    if (peek.status == RingStatus::kClosedAndEmpty || peek.status == RingStatus::kCorrupt) break;
    if (peek.status != RingStatus::kOk) continue;
    for (std::uint32_t i = 0; i < peek.count; ++i) {
      torn += Whole(peek.records + i * consumer.stride_bytes(), expected++) ? 0 : 1;
    }
    consumer.Release(peek.count > 1 ? peek.count - peek.count / 2 : 1);
    expected = consumer.tail();
  }
  thread.join();
  EXPECT_TRUE(produced) << "the producer slept through a release";
  EXPECT_EQ(lost_wake_ups, 0);
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(consumer.tail(), first + p.records);
}

INSTANTIATE_TEST_SUITE_P(Rhythms, RingStressTest,
                         ::testing::Values(StressCase{1, 1, 20'000}, StressCase{2, 3, 50'000},
                                           StressCase{16, 8, 300'000},
                                           StressCase{1024, 64, 500'000}));

// Four producers with a ring each share one bell, as a learner's ingest thread has it.
TEST(BellStressTest, OneSleeperHearsFourProducers) {
  constexpr int kRings = 4;
  constexpr std::uint64_t kRecords = 50'000;
  const RingSpec spec = {.capacity = 8, .record_bytes = 8 * kWords, .spec_hash = 1};
  BellBlock block = {};
  Bell bell(&block);
  std::vector<RingMemory> memories;
  std::vector<RingProducer> producers;
  std::vector<RingConsumer> consumers;
  for (int r = 0; r < kRings; ++r) {
    memories.emplace_back(spec);
    producers.push_back(RingProducer::Over(memories.back().get(), spec));
    producers.back().SetBell(bell);
    consumers.push_back(RingConsumer::Over(memories.back().get(), spec));
  }
  std::vector<std::thread> threads;
  std::atomic<int> finished{0};
  for (int r = 0; r < kRings; ++r) {
    threads.emplace_back([&, r] {
      finished += Produce(producers[static_cast<std::size_t>(r)], 4, kRecords,
                          static_cast<std::uint64_t>(r))
                      ? 1
                      : 0;
    });
  }
  // Drains everything there is; returns how many records, or -1 when all rings are closed and
  // empty.
  const auto drain = [&] {
    int closed = 0;
    int found = 0;
    for (RingConsumer& consumer : consumers) {
      const RingPeek peek = consumer.Peek();
      closed += peek.status == RingStatus::kClosedAndEmpty ? 1 : 0;
      for (std::uint32_t i = 0; i < peek.count; ++i) {
        EXPECT_TRUE(Whole(peek.records + i * consumer.stride_bytes(), peek.first + i));
      }
      if (peek.count > 0) consumer.Release(peek.count);
      found += static_cast<int>(peek.count);
    }
    return closed == kRings ? -1 : found;
  };
  int lost_wake_ups = 0;
  for (int found = 0; found >= 0 && lost_wake_ups == 0; found = drain()) {
    if (found > 0) continue;
    const std::uint32_t armed = bell.Arm();
    if (drain() != 0) {
      bell.Disarm(armed);
    } else if (!IsRung(bell, armed)) {
      ++lost_wake_ups;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost_wake_ups, 0);
  EXPECT_EQ(finished.load(), kRings);
  for (const RingConsumer& consumer : consumers) EXPECT_EQ(consumer.tail(), kRecords);
}

// A producer killed at random moments under load, over and over: what is found is whole and in
// order, and the file goes away.
TEST(RingKillStressTest, RandomKillsNeverTearARecord) {
  const RingSpec spec = {.capacity = 64, .record_bytes = 8 * kWords, .spec_hash = 1};
  constexpr int kKills = 200;
  std::uint64_t records = 0;
  for (std::uint32_t round = 0; round < kKills; ++round) {
    const ScratchDir scratch;
    const pid_t child = fork();
    if (child == 0) {
      RingProducer producer = RingProducer::Create(
          Region::Create(scratch.path(), "ring", RegionKind::kRing, RingRegionBytes(spec), 1, 1),
          spec);
      Produce(producer, 16, ~std::uint64_t{0} / 2, round);
      _exit(0);
    }
    std::optional<RingConsumer> consumer;
    const Deadline deadline(MonotonicClock::Get(), kLongNs);
    while (!consumer && !deadline.Passed()) {
      try {
        consumer.emplace(RingConsumer::Attach(scratch.path() + "/ring", 1));
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ExitCode::kTryAgain) << error.what();
      }
    }
    ASSERT_TRUE(consumer);
    const std::uint64_t kill_at =
        BoundedDraw(PhiloxDraw(9, 0, round, PhiloxPurpose::kSampler).word[0], 5000);
    bool killed = false;
    while (true) {
      if (!killed && consumer->tail() >= kill_at) {
        ASSERT_EQ(kill(child, SIGKILL), 0);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        killed = true;
      }
      const RingPeek peek = consumer->Peek();
      if (peek.status == RingStatus::kEmpty && killed) break;
      ASSERT_NE(peek.status, RingStatus::kCorrupt) << consumer->corrupt_reason();
      for (std::uint32_t i = 0; i < peek.count; ++i) {
        ASSERT_TRUE(Whole(peek.records + i * consumer->stride_bytes(), peek.first + i));
      }
      if (peek.count > 0) consumer->Release(peek.count);
    }
    EXPECT_FALSE(consumer->OwnerAlive());
    consumer->Unlink();
    EXPECT_TRUE(ListRegions(scratch.path()).empty());
    records += consumer->tail();
  }
  EXPECT_GT(records, 0U);
}

}  // namespace
}  // namespace tetrion
