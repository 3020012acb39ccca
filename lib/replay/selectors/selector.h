#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tetrion {

// Rows [start, start + rows) of all lanes of one shard, or of lane `lane` alone when it is >= 0.
struct Window {
  int shard = 0;
  std::uint64_t start = 0;
  int lane = -1;
};

// What may be sampled of a shard: logical rows [lo, hi).
struct ShardRange {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
};

// What a limiter decides by. A selector counts in its own item: one window that it could draw.
struct ItemCounts {
  std::int64_t inserted = 0;  // became drawable since the start, less what was lost undrawn
  std::int64_t drawn = 0;     // since the start
  std::int64_t size = 0;      // can be drawn now
  std::int64_t lost = 0;      // overwritten before a draw took them, where each is drawn once
};

// What a draw found. Never an exception: "not enough data yet" is an ordinary outcome.
struct [[nodiscard]] DrawResult {
  bool ready = false;
  std::int64_t have = 0;  // items there
  std::int64_t need = 0;
};

// Decides which committed rows become a batch: fifo.h draws every window once, in order; uniform.h
// draws any, as often as it is asked; online.h draws fresh ones once, then any. When writer and
// reader have to wait, the limiter decides (lib/replay/limiter.h). Called under the gate's mutex by
// writer and reader; no call blocks.
class Selector {
 public:
  virtual ~Selector() = default;
  // Rows below `committed` of the shard may be sampled; never goes down.
  virtual void OnCommit(int shard, std::uint64_t committed) = 0;
  // Rows below `valid_lo` of the shard are gone.
  virtual void OnReclaim(int shard, std::uint64_t valid_lo) = 0;
  // Rows from `base` on are a new ring's; all rows below are committed.
  virtual void OnGeneration(int shard, std::uint64_t base) = 0;
  virtual ItemCounts counts() const = 0;
  // Appends `count` windows to `out`, or nothing when not ready. `ranges` is indexed by shard.
  virtual DrawResult Draw(int count, std::span<const ShardRange> ranges,
                          std::vector<Window>& out) = 0;
};

}  // namespace tetrion
