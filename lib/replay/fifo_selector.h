#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "lib/replay/selector.h"

namespace tetrion {

// Delivers every window of T transitions once, oldest first. Window k of a shard's life is rows
// [base + kT, base + kT + T] of all lanes (T+1 rows, one row of overlap with the next). One queue
// over all shards; its limiter lets ingest run while fewer than 2 * batch_windows complete windows
// are undelivered, all shards together, so that training stays close to on-policy.
//
// Nothing undelivered is overwritten when a shard holds 2 * batch_windows * T rows and the chunk
// that is being written besides: FifoReplayRows (lib/run/run_config.h), which the run's settings
// obey.
class FifoSelector final : public Selector {
 public:
  FifoSelector(int shards, int window_steps, int batch_windows);

  void OnCommit(int shard, std::uint64_t life_base, std::uint64_t committed) override;
  void OnReclaim(int shard, std::uint64_t valid_lo) override;
  void OnNewLife(int shard) override;
  bool MayInsert() const override { return undelivered() < limit_; }
  DrawResult Draw(int count, std::span<const ShardRange> ranges, std::vector<Window>& out) override;

  std::int64_t undelivered() const { return static_cast<std::int64_t>(queue_.size()); }
  std::int64_t overwritten() const override { return overwritten_; }

 private:
  const std::uint64_t window_steps_;
  const std::int64_t limit_;
  std::vector<std::uint64_t> next_start_;  // [S] start of the shard's next window
  std::vector<std::uint64_t> life_base_;   // [S] base the starts count from
  std::deque<Window> queue_;
  std::int64_t overwritten_ = 0;
};

}  // namespace tetrion
