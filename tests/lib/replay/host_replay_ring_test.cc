#include "lib/replay/host_replay_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "lib/core/philox.h"
#include "lib/replay/fifo_selector.h"
#include "lib/run/run_config.h"

namespace tetrion {
namespace {

constexpr int kStride = 4;
constexpr int kWindow = 4;

struct Fixture {
  explicit Fixture(int shards = 2, int batch_windows = 1, int capacity = 16) {
    auto fifo = std::make_unique<FifoSelector>(shards, kWindow, batch_windows);
    selector = fifo.get();
    ring = std::make_unique<HostReplayRing>(
        ReplayConfig{.row = {.record_bytes = 8, .lanes = 2, .has_mask = false},
                     .shards = shards,
                     .capacity_rows = capacity,
                     .commit_stride = kStride},
        std::move(fifo));
  }

  // One row whose record says shard and row.
  std::vector<std::byte> Row(int shard, int row) const {
    const RowLayout& layout = ring->layout();
    std::vector<std::byte> bytes(layout.row_bytes);
    const RowView view(layout, bytes.data());
    view.header->row = static_cast<std::uint64_t>(row);
    for (int lane = 0; lane < 2; ++lane) {
      const std::int32_t tag = shard * 1000 + row;
      std::memcpy(view.record + lane * 8, &tag, sizeof tag);
      view.action[lane] = tag;
      view.cont[lane] = 1.0F;
      view.flags[lane] = 0;
      view.episode_id[lane] = 0;
    }
    return bytes;
  }

  PushResult Push(int shard, int row) {
    int pushed = 0;
    return ring->PushRows(shard, Row(shard, row).data(), 1, 0, pushed);
  }

  std::unique_ptr<HostReplayRing> ring;
  FifoSelector* selector = nullptr;
};

TEST(HostReplayRingTest, UncommittedRowsAreInvisible) {
  Fixture f;
  for (int row = 0; row < 3; ++row) ASSERT_EQ(f.Push(0, row), PushResult::kPushed);
  EXPECT_EQ(f.ring->Stats(0).written_rows, 3U);
  EXPECT_EQ(f.ring->Stats(0).committed_rows, 0U);
  EXPECT_FALSE(f.ring->OpenLease(1, kWindow + 1, 0));
}

TEST(HostReplayRingTest, GatherReturnsExactlyTheWindowsRows) {
  Fixture f;
  for (int row = 0; row < 8; ++row) ASSERT_EQ(f.Push(1, row), PushResult::kPushed);
  RowBatch batch(f.ring->layout().spec, kWindow, 1);
  ReadLease lease = f.ring->OpenLease(1, kWindow + 1, 0);
  ASSERT_TRUE(lease);
  f.ring->Gather(lease, batch);
  for (int t = 0; t <= kWindow; ++t) {
    EXPECT_EQ(batch.action[static_cast<std::size_t>(t * 2)], 1000 + t);
    EXPECT_EQ(batch.action[static_cast<std::size_t>(t * 2 + 1)], 1000 + t);
  }
}

TEST(HostReplayRingTest, LimiterHoldsTheWriterUntilTheTrainerTakesAWindow) {
  Fixture f;
  int row = 0;
  while (f.Push(0, row) == PushResult::kPushed) ++row;
  EXPECT_EQ(f.selector->undelivered(), 2);  // 2 * batch_windows
  EXPECT_EQ(f.Push(0, row), PushResult::kLimited);
  EXPECT_EQ(f.Push(1, 0), PushResult::kLimited);  // one queue over all shards
  f.ring->OpenLease(1, kWindow + 1, 0).Close();
  EXPECT_EQ(f.Push(0, row), PushResult::kPushed);
}

TEST(HostReplayRingTest, OpenLeaseStopsTheWriterAtItsRowsAndClosingLetsItGoOn) {
  Fixture f(1, 1, 16);
  int row = 0;
  ASSERT_EQ(f.Push(0, row++), PushResult::kPushed);
  while (f.selector->undelivered() == 0) ASSERT_EQ(f.Push(0, row++), PushResult::kPushed);
  ReadLease lease = f.ring->OpenLease(1, kWindow + 1, 0);  // rows 0..4
  ASSERT_TRUE(lease);
  PushResult result = PushResult::kPushed;
  while (row < 100) {
    result = f.Push(0, row);
    if (result == PushResult::kLeased) break;
    if (result == PushResult::kPushed) {
      ++row;
    } else {
      f.ring->OpenLease(1, kWindow + 1, 0).Close();
    }
  }
  EXPECT_EQ(result, PushResult::kLeased);
  EXPECT_EQ(row, 16);  // every slot is used; row 16 would take row 0's
  lease.Close();
  EXPECT_EQ(f.Push(0, row), PushResult::kPushed);
}

// Ten laps with random push sizes and random partial flushes: every window is delivered once, in
// order, with its own rows.
TEST(HostReplayRingTest, WrapsAtEveryOffsetWithoutLosingOrTearingAWindow) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Fixture f(1, 1, 16);
    RowBatch batch(f.ring->layout().spec, kWindow, 1);
    std::uint64_t next_window = 0;
    int row = 0;
    for (std::uint32_t turn = 0; row < 160; ++turn) {
      const PhiloxBlock draw = PhiloxDraw(seed, turn, 0, PhiloxPurpose::kSampler);
      const int count = 1 + static_cast<int>(BoundedDraw(draw.word[0], 7));
      std::vector<std::byte> rows;
      for (int i = 0; i < count; ++i) {
        const auto one = f.Row(0, row + i);
        rows.insert(rows.end(), one.begin(), one.end());
      }
      int pushed = 0;
      const PushResult result = f.ring->PushRows(0, rows.data(), count, 0, pushed);
      row += pushed;
      if (draw.word[1] % 5 == 0) f.ring->Flush(0);
      if (result == PushResult::kPushed && draw.word[2] % 2 == 0) continue;
      while (ReadLease lease = f.ring->OpenLease(1, kWindow + 1, 0)) {
        ASSERT_EQ(lease.windows()[0].start, next_window);
        f.ring->Gather(lease, batch);
        for (int t = 0; t <= kWindow; ++t) {
          ASSERT_EQ(batch.action[static_cast<std::size_t>(t * 2)],
                    static_cast<int>(next_window) + t);
        }
        next_window += kWindow;
      }
    }
    EXPECT_GE(next_window, 120U);
    EXPECT_EQ(f.selector->overwritten(), 0);
  }
}

TEST(HostReplayRingTest, NewRingInASlotStartsWindowsAtItsOwnFirstRow) {
  Fixture f(1, 2, 32);
  for (int row = 0; row < 6; ++row) ASSERT_EQ(f.Push(0, row), PushResult::kPushed);
  f.ring->BeginGeneration(0);  // commits the partial chunk, then forgets what was undelivered
  EXPECT_EQ(f.ring->Stats(0).committed_rows, 6U);
  for (int row = 100; row < 106; ++row) ASSERT_EQ(f.Push(0, row), PushResult::kPushed);
  f.ring->Flush(0);
  RowBatch batch(f.ring->layout().spec, kWindow, 1);
  ReadLease lease = f.ring->OpenLease(1, kWindow + 1, 0);
  ASSERT_TRUE(lease);
  f.ring->Gather(lease, batch);
  EXPECT_EQ(batch.action[0], 100);
}

TEST(HostReplayRingTest, AddressesAreAlignedAndNeverMove) {
  Fixture f;
  const std::byte* slot = f.ring->ObsSlot(0, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot - f.ring->layout().record) % 256, 0U);
  for (int row = 0; row < 16; ++row) {
    while (f.Push(0, row) == PushResult::kLimited) f.ring->OpenLease(1, kWindow + 1, 0).Close();
  }
  ASSERT_TRUE(f.ring->OpenLease(1, kWindow + 1, 0));
  ASSERT_EQ(f.Push(0, 16), PushResult::kPushed);  // row 16 takes row 0's slot
  EXPECT_EQ(f.ring->ObsSlot(0, 17), slot + f.ring->layout().row_bytes);
}

TEST(HostReplayRingTest, CheckInvariantsNamesWhatIsWrong) {
  Fixture f;
  for (int row = 0; row < 8; ++row) {
    auto bytes = f.Row(0, row);
    const RowView view(f.ring->layout(), bytes.data());
    view.episode_id[0] = row >= 5 ? 1 : 0;
    if (row == 4) view.flags[0] = kIsLast;
    if (row == 5) view.flags[0] = kIsFirst;
    int pushed = 0;
    ASSERT_EQ(f.ring->PushRows(0, bytes.data(), 1, 0, pushed), PushResult::kPushed);
  }
  EXPECT_EQ(f.ring->CheckInvariants(0, 0, 8), nullptr);
  auto bad = f.Row(0, 8);  // episode id goes back without is_first
  int pushed = 0;
  ASSERT_EQ(f.ring->PushRows(0, bad.data(), 1, 0, pushed), PushResult::kPushed);
  EXPECT_STREQ(f.ring->CheckInvariants(0, 0, 9), "is_first and episode_id do not move together");
}

TEST(HostReplayRingDeathTest, FillingACommittedRowInPlaceIsABug) {
  Fixture f;
  for (int row = 0; row < 4; ++row) ASSERT_EQ(f.Push(0, row), PushResult::kPushed);
  EXPECT_DEATH(f.ring->ObsSlot(0, 3), "chunk being written");
}

// Windows that were overwritten before a reader took them, of which the writer knows: it pushes
// `push` rows a call as far as the limiter lets it, the reader takes one batch when there is one.
std::int64_t LostWindows(int window, int batch_windows, int stride, int capacity, int push) {
  constexpr int kShards = 2;
  HostReplayRing ring({.row = {.record_bytes = 8, .lanes = 1, .has_mask = false},
                       .shards = kShards,
                       .capacity_rows = capacity,
                       .commit_stride = stride},
                      std::make_unique<FifoSelector>(kShards, window, batch_windows));
  const std::vector<std::byte> rows(static_cast<std::size_t>(push) * ring.layout().row_bytes);
  std::vector<std::uint64_t> next(kShards, 0);
  for (int round = 0; round < 2000 && next[0] < static_cast<std::uint64_t>(3 * capacity); ++round) {
    // The first shard alone, now and then both: the windows may all lie in one.
    for (int shard = 0; shard < (round % 8 < 6 ? 1 : kShards); ++shard) {
      int pushed = 0;
      while (ring.PushRows(shard, rows.data(), push, 0, pushed) == PushResult::kPushed) {
      }
    }
    const ReadLease lease = ring.OpenLease(batch_windows, window + 1, 0);
    if (!lease) continue;
    for (const Window& drawn : lease.windows()) {
      std::uint64_t& start = next[static_cast<std::size_t>(drawn.shard)];
      if (ring.overwritten_windows() == 0) {
        EXPECT_EQ(drawn.start, start);
      }
      start = drawn.start + static_cast<std::uint64_t>(window);
    }
  }
  EXPECT_GE(next[0], static_cast<std::uint64_t>(3 * capacity)) << "the ring was never lapped";
  return ring.overwritten_windows();
}

TEST(HostReplayRingTest, RowsThatTheSettingsAskForLoseNoWindowWhateverTheStride) {
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

TEST(HostReplayRingTest, WindowsLostInASmallerReplayAreCounted) {
  EXPECT_GT(LostWindows(/*window=*/4, /*batch_windows=*/15, /*stride=*/64, /*capacity=*/128, 1), 0);
}

}  // namespace
}  // namespace tetrion
