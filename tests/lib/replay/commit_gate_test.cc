#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "lib/replay/host_replay_ring.h"
#include "tests/lib/replay/any_window_selector.h"

// The gate of lib/replay/replay_ring.h with a selector that never holds the writer, so that commits
// and leases alone keep readers and writer apart.
namespace tetrion {
namespace {

constexpr int kStride = 4;
constexpr int kCapacity = 16;
constexpr int kWindowRows = 5;

struct Gate {
  explicit Gate(int margin = 0) {
    auto any = std::make_unique<testing::AnyWindowSelector>(kWindowRows);
    selector = any.get();
    ring = std::make_unique<HostReplayRing>(
        ReplayConfig{.row = {.record_bytes = 8, .lanes = 2, .has_mask = false},
                     .capacity_rows = kCapacity,
                     .commit_stride = kStride,
                     .safety_margin_rows = margin},
        std::move(any));
  }

  // Pushes the next `count` rows at once; every action of a row is its number.
  PushResult Push(int count) {
    const RowLayout& layout = ring->layout();
    std::vector<std::byte> rows(static_cast<std::size_t>(count) * layout.row_bytes);
    for (int i = 0; i < count; ++i) {
      const RowView view(layout, rows.data() + static_cast<std::size_t>(i) * layout.row_bytes);
      view.action[0] = view.action[1] = next + i;
    }
    const PushResult result = ring->PushRows(0, rows.data(), count, 0, pushed);
    next += pushed;
    return result;
  }

  std::unique_ptr<HostReplayRing> ring;
  testing::AnyWindowSelector* selector = nullptr;
  int next = 0;
  int pushed = 0;
};

// A commit makes rows visible: at that moment they hold their own data, not the last lap's.
TEST(CommitGateTest, RowsAreInMemoryWhenTheyAreCommitted) {
  Gate gate;
  const RowLayout& layout = gate.ring->layout();
  std::byte* const first_row = gate.ring->ObsSlot(0, 0) - layout.record;
  std::uint64_t seen = 0;
  int wrong = 0;
  gate.selector->on_commit = [&](int, std::uint64_t committed) {
    for (; seen < committed; ++seen) {
      const RowView row(layout, first_row + seen % kCapacity * layout.row_bytes);
      wrong += row.action[0] != static_cast<std::int32_t>(seen) ? 1 : 0;
    }
  };
  for (int count = 1; count <= 9; ++count) {
    for (int i = 0; i < 8; ++i) ASSERT_EQ(gate.Push(count), PushResult::kPushed);
  }
  ASSERT_EQ(gate.Push(1), PushResult::kPushed);
  EXPECT_EQ(seen, 8U * 45);
  gate.ring->Flush(0);
  EXPECT_EQ(seen, 8U * 45 + 1) << "the last row of a ring that ends in a chunk";
  EXPECT_EQ(wrong, 0);
}

TEST(CommitGateTest, LeaseStopsAPushOfManyRowsAtTheFirstRowItHolds) {
  Gate gate;
  ASSERT_EQ(gate.Push(kCapacity), PushResult::kPushed);
  ReadLease lease;
  do {
    lease = gate.ring->OpenLease(1, kWindowRows, 0);
    ASSERT_TRUE(lease);
  } while (lease.windows()[0].start < kStride);
  // Chunks below the one that holds the window's first row are free.
  const int free = static_cast<int>(lease.windows()[0].start) / kStride * kStride;
  EXPECT_EQ(gate.Push(kCapacity), PushResult::kLeased);
  EXPECT_EQ(gate.pushed, free);
  lease.Close();
  EXPECT_EQ(gate.Push(kCapacity), PushResult::kPushed);
}

TEST(CommitGateTest, EachOfTwoLeasesHoldsItsRows) {
  Gate gate;
  ASSERT_EQ(gate.Push(kCapacity), PushResult::kPushed);
  ReadLease one = gate.ring->OpenLease(1, kWindowRows, 0);
  ReadLease other = gate.ring->OpenLease(1, kWindowRows, 0);
  ASSERT_TRUE(one && other);
  if (one.windows()[0].start > other.windows()[0].start) std::swap(one, other);
  const int free = static_cast<int>(one.windows()[0].start) / kStride * kStride;
  EXPECT_EQ(gate.Push(kCapacity), PushResult::kLeased);
  EXPECT_EQ(gate.pushed, free);
  one.Close();
  const int rest = static_cast<int>(other.windows()[0].start) / kStride * kStride - free;
  EXPECT_EQ(gate.Push(kCapacity), PushResult::kLeased);
  EXPECT_EQ(gate.pushed, rest);
}

// What of the newest rows readers may not have yet: neither is a window of them drawn, nor does the
// selector hear of them.
TEST(CommitGateTest, SafetyMarginKeepsTheNewestRowsFromReaders) {
  constexpr int kMargin = 6;
  Gate gate(kMargin);
  std::uint64_t told = 0;
  gate.selector->on_commit = [&](int, std::uint64_t committed) { told = committed; };
  ASSERT_EQ(gate.Push(8), PushResult::kPushed);
  EXPECT_EQ(gate.ring->Stats(0).committed_rows, 8U);
  EXPECT_EQ(told, 2U);
  EXPECT_FALSE(gate.ring->OpenLease(1, kWindowRows, 0)) << "two rows may be read, five are asked";
  ASSERT_EQ(gate.Push(4), PushResult::kPushed);
  EXPECT_EQ(told, 6U);
  for (int i = 0; i < 100; ++i) {
    const ReadLease lease = gate.ring->OpenLease(1, kWindowRows, 0);
    ASSERT_TRUE(lease);
    EXPECT_LE(lease.windows()[0].start + kWindowRows, 6U);
  }
}

}  // namespace
}  // namespace tetrion
