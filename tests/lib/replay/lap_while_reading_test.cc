#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/replay/fifo_selector.h"
#include "lib/replay/host_replay_ring.h"

namespace tetrion {
namespace {

// The property: whatever the trainer gathers are the rows it leased, whole, in order and each once,
// while the writer laps the ring more than a thousand times. Every word of a row holds its number,
// so one torn or stale word shows. Run under TSan as well.
TEST(LapWhileReadingStressTest, GatheredRowsCarryTheirOwnTagsOverAThousandLaps) {
  constexpr int kShards = 2, kLanes = 4, kWindow = 4, kStride = 2;
  constexpr int kCapacity = static_cast<int>(FifoCapacityRows(kWindow, 1));
  constexpr std::uint64_t kRows = 1000ULL * kCapacity + 3;
  HostReplayRing ring({.row = {.record_bytes = 16, .lanes = kLanes, .has_mask = true},
                       .shards = kShards,
                       .capacity_rows = kCapacity,
                       .commit_stride = kStride},
                      std::make_unique<FifoSelector>(kShards, kWindow, 1));
  std::atomic<bool> done{false};

  std::thread writer([&] {
    const RowLayout& layout = ring.layout();
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
        while (ring.PushRows(shard, row.data(), 1, kNanosPerSecond, pushed) !=
               PushResult::kPushed) {
        }
      }
    }
    done = true;
  });

  RowBatch batch(ring.layout().spec, kWindow, 1);
  std::vector<std::uint64_t> next(kShards, 0);
  std::uint64_t wrong = 0, windows = 0;
  while (true) {
    const bool was_done = done;
    ReadLease lease = ring.OpenLease(1, kWindow + 1, 10 * kNanosPerMilli);
    if (!lease) {
      if (was_done) break;
      continue;
    }
    ring.Gather(lease, batch);
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

}  // namespace
}  // namespace tetrion
