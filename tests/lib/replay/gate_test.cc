#include "lib/replay/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "lib/replay/selectors/fifo.h"
#include "lib/run/run_config.h"
#include "tests/lib/replay/any_window_selector.h"
#include "tests/support/asleep.h"

namespace tetrion {
namespace {

constexpr int kStride = 4;
constexpr int kCapacity = 16;
constexpr int kWindowRows = 5;

// Acquires and commits `count` rows of a shard; returns why it could not have all of them.
AcquireResult Push(ReplayGate& gate, int shard, int count, int& pushed) {
  pushed = 0;
  while (pushed < count) {
    const Chunk chunk = gate.Acquire(shard, count - pushed, 0);
    if (!chunk) return chunk.result;
    gate.Commit(chunk);
    pushed += chunk.rows;
  }
  return AcquireResult::kAcquired;
}

// One shard and a selector that never holds the writer, so that commits and leases alone keep
// reader and writer apart.
struct Open {
  explicit Open(int margin = 0) {
    auto any = std::make_unique<testing::AnyWindowSelector>(kWindowRows);
    selector = any.get();
    gate = std::make_unique<ReplayGate>(
        GateConfig{
            .capacity_rows = kCapacity, .commit_stride = kStride, .safety_margin_rows = margin},
        std::move(any), Limiter::Unlimited());
  }
  AcquireResult Push(int count) { return tetrion::Push(*gate, 0, count, pushed); }
  ReadLease Lease() { return gate->OpenLease(1, kWindowRows, 0); }
  // A lease whose first row is at least `start`.
  ReadLease LeaseFrom(std::uint64_t start) {
    ReadLease lease;
    do {
      lease = Lease();
    } while (lease && lease.windows()[0].start < start);
    return lease;
  }

  std::unique_ptr<ReplayGate> gate;
  testing::AnyWindowSelector* selector = nullptr;
  int pushed = 0;
};

// One that passes when the test says so.
struct FakeEvent final : public Event {
  bool Passed() const override { return passed; }
  void Fence() const override { ++fences; }
  bool passed = false;
  mutable int fences = 0;
};

TEST(ReplayGateTest, UncommittedRowsAreInvisible) {
  Open open;
  ASSERT_EQ(open.Push(3), AcquireResult::kAcquired);
  EXPECT_EQ(open.gate->Stats(0).written_rows, 3U);
  EXPECT_EQ(open.gate->Stats(0).committed_rows, 0U);
  EXPECT_FALSE(open.Lease());
}

TEST(ReplayGateTest, ChunkEndsWithTheCommitStrideAndIsGivenOutAgainUntilItIsCommitted) {
  Open open;
  const Chunk whole = open.gate->Acquire(0, 100, 0);
  EXPECT_EQ(whole.rows, kStride);
  const Chunk part = open.gate->Acquire(0, 3, 0);
  EXPECT_EQ(part.first, 0U);
  EXPECT_EQ(part.rows, 3);
  open.gate->Commit(part);
  const Chunk rest = open.gate->Acquire(0, 3, 0);
  EXPECT_EQ(rest.first, 3U);
  EXPECT_EQ(rest.rows, 1);
  open.gate->Commit(rest);
  EXPECT_EQ(open.gate->Stats(0).committed_rows, 4U);
}

TEST(ReplayGateTest, FlushMakesTheLastRowsOfARingVisible) {
  Open open;
  std::uint64_t seen = 0;
  open.selector->on_commit = [&](int, std::uint64_t committed) { seen = committed; };
  ASSERT_EQ(open.Push(kStride + 1), AcquireResult::kAcquired);
  EXPECT_EQ(seen, 4U);
  open.gate->Flush(0);
  EXPECT_EQ(seen, 5U);
}

TEST(ReplayGateTest, LeaseStopsAPushOfManyRowsAtTheFirstRowItHolds) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  ReadLease lease = open.LeaseFrom(kStride);
  ASSERT_TRUE(lease);
  // Chunks below the one that holds the window's first row are free.
  const int free = static_cast<int>(lease.windows()[0].start) / kStride * kStride;
  EXPECT_EQ(open.Push(kCapacity), AcquireResult::kLeased);
  EXPECT_EQ(open.pushed, free);
  lease.Close();
  EXPECT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
}

TEST(ReplayGateTest, EachOfTwoLeasesHoldsItsRows) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  ReadLease one = open.Lease();
  ReadLease other = open.Lease();
  ASSERT_TRUE(one && other);
  if (one.windows()[0].start > other.windows()[0].start) std::swap(one, other);
  const int free = static_cast<int>(one.windows()[0].start) / kStride * kStride;
  EXPECT_EQ(open.Push(kCapacity), AcquireResult::kLeased);
  EXPECT_EQ(open.pushed, free);
  one.Close();
  const int rest = static_cast<int>(other.windows()[0].start) / kStride * kStride - free;
  EXPECT_EQ(open.Push(kCapacity), AcquireResult::kLeased);
  EXPECT_EQ(open.pushed, rest);
}

// What of the newest rows readers may not have yet: neither is a window of them drawn, nor does the
// selector hear of them.
TEST(ReplayGateTest, SafetyMarginKeepsTheNewestRowsFromReaders) {
  constexpr int kMargin = 6;
  Open open(kMargin);
  std::uint64_t told = 0;
  open.selector->on_commit = [&](int, std::uint64_t committed) { told = committed; };
  ASSERT_EQ(open.Push(8), AcquireResult::kAcquired);
  EXPECT_EQ(open.gate->Stats(0).committed_rows, 8U);
  EXPECT_EQ(told, 2U);
  EXPECT_FALSE(open.Lease()) << "two rows may be read, five are asked";
  ASSERT_EQ(open.Push(4), AcquireResult::kAcquired);
  EXPECT_EQ(told, 6U);
  for (int i = 0; i < 100; ++i) {
    const ReadLease lease = open.Lease();
    ASSERT_TRUE(lease);
    EXPECT_LE(lease.windows()[0].start + kWindowRows, 6U);
  }
}

TEST(ReplayGateTest, LimiterHoldsTheWriterUntilTheReaderTakesAWindow) {
  ReplayGate gate({.shards = 2, .capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<FifoSelector>(2, kWindowRows - 1), FifoLimiter(1));
  int pushed = 0;
  EXPECT_FALSE(gate.MaySample(1));
  EXPECT_EQ(Push(gate, 0, 100, pushed), AcquireResult::kLimited);
  EXPECT_EQ(pushed, 12);  // two windows of four transitions and the chunk that completes them
  EXPECT_TRUE(gate.MaySample(2));
  EXPECT_FALSE(gate.MaySample(3));
  EXPECT_EQ(Push(gate, 1, 1, pushed), AcquireResult::kLimited);  // one queue over all shards
  gate.OpenLease(1, kWindowRows, 0).Close();
  EXPECT_EQ(Push(gate, 0, 1, pushed), AcquireResult::kAcquired);
}

TEST(ReplayGateTest, WriterThatWaitsIsLetRunAndTheReaderKeepsItsBound) {
  ReplayGate gate({.capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<FifoSelector>(1, kWindowRows - 1), FifoLimiter(1));
  int pushed = 0;
  EXPECT_EQ(Push(gate, 0, 100, pushed), AcquireResult::kLimited);
  gate.LetWriterRun();
  EXPECT_EQ(Push(gate, 0, 100, pushed), AcquireResult::kAcquired);
}

// Each wait below is longer than a test's patience: what ends it in time is the call that wakes.
constexpr std::int64_t kNapNs = 2 * testing::kPatienceNs;

// A writer that sleeps until it may go on with the shard's rows, which `wake` lets it.
template <typename Wake>
void ExpectWriterWokenBy(ReplayGate& gate, const Wake& wake) {
  std::atomic<bool> acquired{false};
  const testing::Sleeper writer(
      [&] { acquired = gate.Acquire(0, 1, kNapNs).result == AcquireResult::kAcquired; });
  ASSERT_TRUE(writer.FallsAsleep());
  wake();
  ASSERT_TRUE(writer.IsDone());
  EXPECT_TRUE(acquired);
}

class ReplayGateWakingTest : public ::testing::Test {
 protected:
  ReplayGate gate{{.capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<FifoSelector>(1, kWindowRows - 1),
                  FifoLimiter(1)};
  int pushed = 0;
};

TEST_F(ReplayGateWakingTest, CommitWakesAReaderThatSleepsForAWindow) {
  std::atomic<bool> drawn{false};
  const testing::Sleeper reader(
      [&] { drawn = static_cast<bool>(gate.OpenLease(1, kWindowRows, kNapNs)); });
  ASSERT_TRUE(reader.FallsAsleep());
  static_cast<void>(Push(gate, 0, 2 * kWindowRows, pushed));
  ASSERT_TRUE(reader.IsDone());
  EXPECT_TRUE(drawn);
}

TEST_F(ReplayGateWakingTest, DrawWakesAWriterThatTheLimiterHolds) {
  ASSERT_EQ(Push(gate, 0, 100, pushed), AcquireResult::kLimited);
  ReadLease lease;  // stays open: it is the draw that wakes
  ExpectWriterWokenBy(gate, [&] { lease = gate.OpenLease(1, kWindowRows, 0); });
  EXPECT_TRUE(lease);
}

TEST_F(ReplayGateWakingTest, DrainWakesAWriterThatTheLimiterHolds) {
  ASSERT_EQ(Push(gate, 0, 100, pushed), AcquireResult::kLimited);
  ExpectWriterWokenBy(gate, [&] { gate.LetWriterRun(); });
}

TEST(ReplayGateTest, EndOfALeaseWakesAWriterThatWaitsForItsRows) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  ReadLease lease = open.Lease();
  ASSERT_TRUE(lease);
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kLeased);
  ExpectWriterWokenBy(*open.gate, [&] { lease.Close(); });
}

TEST(ReplayGateTest, NewGenerationCommitsWhatTheOldOneLeftAndStartsWindowsAtItsOwnFirstRow) {
  ReplayGate gate({.capacity_rows = 32, .commit_stride = kStride},
                  std::make_unique<FifoSelector>(1, kWindowRows - 1), FifoLimiter(2));
  int pushed = 0;
  ASSERT_EQ(Push(gate, 0, 6, pushed), AcquireResult::kAcquired);
  gate.BeginGeneration(0);
  EXPECT_EQ(gate.Stats(0).committed_rows, 6U);
  ASSERT_EQ(Push(gate, 0, 6, pushed), AcquireResult::kAcquired);
  gate.Flush(0);
  for (const std::uint64_t start : {0U, 6U}) {  // the old one's window is delivered, too
    const ReadLease lease = gate.OpenLease(1, kWindowRows, 0);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease.windows()[0].start, start);
  }
}

TEST(ReplayGateTest, ReaderIsFencedBehindTheCommitOfItsRows) {
  Open open;
  FakeEvent first, second;
  open.gate->Commit(open.gate->Acquire(0, kStride, 0), &first);
  open.gate->Commit(open.gate->Acquire(0, kStride, 0), &second);
  {
    const ReadLease lease = open.Lease();
  }
  EXPECT_EQ(first.fences, 0) << "the later point of the writer's order covers it";
  EXPECT_EQ(second.fences, 1);
  second.passed = true;
  {
    const ReadLease lease = open.Lease();
  }
  EXPECT_EQ(second.fences, 1) << "what has passed needs no fence";
}

TEST(ReplayGateTest, WriterIsFencedBehindTheEndOfALeaseWhoseRowsItDestroys) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  FakeEvent last_read;
  ReadLease lease = open.LeaseFrom(kStride);
  const int free = static_cast<int>(lease.windows()[0].start) / kStride * kStride;
  lease.CloseAfter(&last_read);
  ASSERT_EQ(open.Push(free), AcquireResult::kAcquired);
  EXPECT_EQ(last_read.fences, 0) << "none of its rows yet";
  ASSERT_EQ(open.Push(1), AcquireResult::kAcquired) << "the writer does not wait for the reader";
  EXPECT_EQ(last_read.fences, 1);
  ASSERT_EQ(open.Push(1), AcquireResult::kAcquired);
  EXPECT_EQ(last_read.fences, 1) << "once a chunk";
}

TEST(ReplayGateTest, ClosedLeasesWhoseRowsAreStillReadBoundTheReader) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  FakeEvent last_read[4];
  for (const FakeEvent& event : last_read) {
    ReadLease lease = open.Lease();
    ASSERT_TRUE(lease);
    lease.CloseAfter(&event);
  }
  EXPECT_FALSE(open.Lease());
  last_read[2].passed = true;
  EXPECT_TRUE(open.Lease());
}

// One that passes between two looks of a reader that waits for it.
struct EventThatPassesLater final : public Event {
  bool Passed() const override { return ++looks > 2; }
  void Fence() const override {}
  mutable int looks = 0;
};

TEST(ReplayGateTest, ReaderThatWaitsForAClosedLeaseTakesItsPlaceWhenItsRowsAreRead) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  FakeEvent never[3];
  EventThatPassesLater last_read;
  for (const FakeEvent& event : never) open.Lease().CloseAfter(&event);
  open.Lease().CloseAfter(&last_read);
  last_read.looks = 0;
  EXPECT_TRUE(open.gate->OpenLease(1, kWindowRows, kNapNs));
}

TEST(ReplayGateTest, LeasesReuseTheMemoryOfTheirWindows) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  const Window* memory = open.gate->OpenLease(8, kWindowRows, 0).windows().data();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(open.gate->OpenLease(1 + i % 8, kWindowRows, 0).windows().data(), memory);
  }
}

TEST(ReplayGateDeathTest, ChunkThatWasNotAcquiredLastIsABug) {
  Open open;
  const Chunk chunk = open.gate->Acquire(0, 1, 0);
  open.gate->Commit(chunk);
  EXPECT_DEATH(open.gate->Commit(chunk), "acquired last");
}

TEST(ReplayGateDeathTest, FifthLeaseIsABug) {
  Open open;
  ASSERT_EQ(open.Push(kCapacity), AcquireResult::kAcquired);
  std::vector<ReadLease> leases;
  for (int i = 0; i < 4; ++i) leases.push_back(open.Lease());
  EXPECT_DEATH(open.Lease(), "leases leak");
}

// Windows that were overwritten before a reader took them, of which the writer knows: it pushes
// `push` rows a call as far as the limiter lets it, the reader takes one batch when there is one.
std::int64_t LostWindows(int window, int batch_windows, int stride, int capacity, int push) {
  constexpr int kShards = 2;
  ReplayGate gate({.shards = kShards, .capacity_rows = capacity, .commit_stride = stride},
                  std::make_unique<FifoSelector>(kShards, window), FifoLimiter(batch_windows));
  std::vector<std::uint64_t> next(kShards, 0);
  for (int round = 0; round < 2000 && next[0] < static_cast<std::uint64_t>(3 * capacity); ++round) {
    // The first shard alone, now and then both: the windows may all lie in one.
    for (int shard = 0; shard < (round % 8 < 6 ? 1 : kShards); ++shard) {
      int pushed = 0;
      while (Push(gate, shard, push, pushed) == AcquireResult::kAcquired) {
      }
    }
    const ReadLease lease = gate.OpenLease(batch_windows, window + 1, 0);
    if (!lease) continue;
    for (const Window& drawn : lease.windows()) {
      std::uint64_t& start = next[static_cast<std::size_t>(drawn.shard)];
      if (gate.overwritten_windows() == 0) {
        EXPECT_EQ(drawn.start, start);
      }
      start = drawn.start + static_cast<std::uint64_t>(window);
    }
  }
  EXPECT_GE(next[0], static_cast<std::uint64_t>(3 * capacity)) << "the ring was never lapped";
  return gate.overwritten_windows();
}

TEST(ReplayGateTest, RowsThatTheSettingsAskForLoseNoWindowWhateverTheStride) {
  for (const int window : {1, 3, 4, 32}) {
    for (const int batch_windows : {1, 2, 15}) {
      for (const int stride : {1, 2, 8, 64, 128}) {
        const auto capacity = static_cast<int>(FifoReplayRows(window, batch_windows, stride));
        for (const int push : {1, 7, stride, 3 * stride}) {
          EXPECT_EQ(LostWindows(window, batch_windows, stride, capacity, push), 0)
              << "T " << window << " W " << batch_windows << " stride " << stride << " push "
              << push;
        }
      }
    }
  }
}

TEST(ReplayGateTest, WindowsLostInASmallerReplayAreCounted) {
  EXPECT_GT(LostWindows(/*window=*/4, /*batch_windows=*/15, /*stride=*/64, /*capacity=*/128, 1), 0);
}

}  // namespace
}  // namespace tetrion
