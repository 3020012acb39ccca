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

// What a draw found. Never an exception: "not enough data yet" is an ordinary outcome.
struct [[nodiscard]] DrawResult {
  bool ready = false;
  std::int64_t have = 0;  // windows (or rows) there, in the selector's unit
  std::int64_t need = 0;
};

// Decides which committed rows become a batch, and when ingest has to wait for the trainer: fifo
// for V-trace (fifo_selector.h); uniform with a samples-per-insert limiter implements the same
// calls. Called under the ring's mutex by writer and reader; no call blocks.
class Selector {
 public:
  virtual ~Selector() = default;
  // Rows [life_base, committed) of the shard are visible; life_base is where its present ring
  // began.
  virtual void OnCommit(int shard, std::uint64_t life_base, std::uint64_t committed) = 0;
  // Rows below valid_lo of the shard are gone.
  virtual void OnReclaim(int shard, std::uint64_t valid_lo) = 0;
  // The slot was given to a new ring: what of it was not delivered yet no longer counts.
  virtual void OnNewLife(int shard) = 0;
  // False: ingest must wait until the trainer has taken something.
  virtual bool MayInsert() const = 0;
  // Windows that were overwritten before a draw took them, since the start.
  virtual std::int64_t overwritten() const = 0;
  // Appends `count` windows to `out`, or nothing when not ready. `ranges` is indexed by shard.
  virtual DrawResult Draw(int count, std::span<const ShardRange> ranges,
                          std::vector<Window>& out) = 0;
};

}  // namespace tetrion
