#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/run/run_config.h"
#include "tests/lib/replay/any_window_selector.h"
#include "tests/lib/replay/gathered.h"

namespace tetrion {
namespace {

// The property: whatever the trainer gathers are the rows it leased, whole, in order and each once,
// while the writer laps the ring more than a thousand times. Every word of a row holds its number,
// so one torn or stale word shows. Run under TSan as well.
TEST(LapWhileReadingStressTest, GatheredRowsCarryTheirOwnTagsOverAThousandLaps) {
  constexpr int kShards = 2, kLanes = 4, kWindow = 4, kStride = 2;
  constexpr int kCapacity = static_cast<int>(FifoReplayRows(kWindow, 1, kStride));
  constexpr std::uint64_t kRows = 1000ULL * kCapacity + 3;
  ReplayGate gate({.shards = kShards, .capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<FifoSelector>(kShards, kWindow), FifoLimiter(1));
  HostRows memory({.record_bytes = 16, .lanes = kLanes, .has_mask = true}, kShards, kCapacity);
  std::atomic<bool> done{false};

  std::thread writer([&] {
    const RowLayout& layout = memory.layout();
    std::vector<std::byte> row(layout.row_bytes);
    for (std::uint64_t r = 0; r < kRows; ++r) {
      for (int shard = 0; shard < kShards; ++shard) {
        const std::uint64_t tag = r * kShards + static_cast<std::uint64_t>(shard);
        const RowView view(layout, row.data());
        for (int lane = 0; lane < kLanes; ++lane) {
          std::memcpy(view.record + lane * 16, &tag, sizeof tag);
          std::memcpy(view.record + lane * 16 + 8, &tag, sizeof tag);
          view.action[lane] = static_cast<std::int32_t>(tag);
          view.mask[lane] = tag;
          view.flags[lane] = 0;
        }
        int pushed = 0;
        while (PushRows(gate, memory, shard, row.data(), 1, kNanosPerSecond, pushed) !=
               AcquireResult::kAcquired) {
        }
      }
    }
    done = true;
  });

  testing::Gathered batch(memory.layout().spec, kWindow + 1, kLanes);
  std::vector<std::uint64_t> next(kShards, 0);
  std::uint64_t wrong = 0, windows = 0;
  while (true) {
    const bool was_done = done;
    ReadLease lease = gate.OpenLease(1, kWindow + 1, 10 * kNanosPerMilli);
    if (!lease) {
      if (was_done) break;
      continue;
    }
    memory.Gather(lease, 0, kLanes, batch.Columns());
    const auto shard = static_cast<std::size_t>(lease.windows()[0].shard);
    const std::uint64_t start = lease.windows()[0].start;
    lease.Close();
    if (start != next[shard]) ++wrong;
    next[shard] = start + kWindow;
    ++windows;
    for (int t = 0; t <= kWindow; ++t) {
      const std::uint64_t tag = (start + static_cast<std::uint64_t>(t)) * kShards + shard;
      for (int lane = 0; lane < kLanes; ++lane) {
        const auto cell = static_cast<std::size_t>(t * kLanes + lane);
        std::uint64_t words[2];
        std::memcpy(words, batch.record.data() + cell * 16, sizeof words);
        wrong += words[0] != tag || words[1] != tag || batch.mask[cell] != tag ||
                 batch.action[cell] != static_cast<std::int32_t>(tag);
      }
    }
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(windows, kShards * (kRows / kWindow - 2));
}

// The same without a limiter: the reader polls for any window, mostly one whose rows the writer
// wants back, and the writer pushes several rows at once. Property: while its lease is open a
// window keeps its own rows, since leases and the order of copy and commit hold by themselves.
TEST(LapWhileReadingStressTest, LeasesAloneKeepTheWriterFromRowsBeingRead) {
  constexpr int kLanes = 64, kWindow = 6, kStride = 4, kCapacity = 16, kBatch = 9;
  constexpr std::uint64_t kRows = 100'000, kMostRows = 50 * kRows, kWindows = 2'000;
  ReplayGate gate({.capacity_rows = kCapacity, .commit_stride = kStride},
                  std::make_unique<testing::AnyWindowSelector>(kWindow + 1), Limiter::Unlimited());
  HostRows memory({.record_bytes = 16, .lanes = kLanes, .has_mask = true}, 1, kCapacity);
  const RowLayout& layout = memory.layout();
  std::atomic<std::uint64_t> windows{0};
  std::atomic<bool> done{false}, torn{false};

  std::thread writer([&] {
    std::vector<std::byte> rows(kBatch * layout.row_bytes);
    const auto enough = [&](std::uint64_t rows_pushed) {
      return torn || rows_pushed >= kMostRows || (rows_pushed >= kRows && windows >= kWindows);
    };
    for (std::uint64_t next = 0; !enough(next);) {
      const int count = 1 + static_cast<int>(next % kBatch);
      for (int i = 0; i < count; ++i) {
        const RowView view(layout, rows.data() + static_cast<std::size_t>(i) * layout.row_bytes);
        const std::uint64_t tag = next + static_cast<std::uint64_t>(i);
        std::fill_n(view.action, kLanes, static_cast<std::int32_t>(tag));
        std::fill_n(view.mask, kLanes, tag);
      }
      int pushed = 0;
      static_cast<void>(PushRows(gate, memory, 0, rows.data(), count, kNanosPerSecond, pushed));
      next += static_cast<std::uint64_t>(pushed);
    }
    done = true;
  });

  testing::Gathered batch(layout.spec, kWindow + 1, kLanes);
  std::uint64_t wrong = 0;
  while (!done && !torn) {
    const ReadLease lease = gate.OpenLease(1, kWindow + 1, 0);
    if (!lease) continue;
    memory.Gather(lease, 0, kLanes, batch.Columns());
    ++windows;
    for (std::size_t cell = 0; cell < batch.mask.size(); ++cell) {
      const std::uint64_t tag = lease.windows()[0].start + cell / kLanes;
      wrong += batch.mask[cell] != tag || batch.action[cell] != static_cast<std::int32_t>(tag);
    }
    torn = wrong > 0;
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(torn || windows >= kWindows) << windows << " windows in " << kMostRows << " rows";
}

}  // namespace
}  // namespace tetrion
