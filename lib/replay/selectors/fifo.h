#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "lib/replay/limiter.h"
#include "lib/replay/selectors/selector.h"

namespace tetrion {

// Delivers every window of T transitions once, oldest first. Window k of a generation is rows
// [base + kT, base + kT + T] of all lanes (T+1 rows, one row of overlap with the next). One queue
// over all shards. No window has rows of two generations.
class FifoSelector final : public Selector {
 public:
  FifoSelector(int shards, int window_steps);

  void OnCommit(int shard, std::uint64_t committed) override;
  void OnReclaim(int shard, std::uint64_t valid_lo) override;
  void OnGeneration(int shard, std::uint64_t base) override;
  ItemCounts counts() const override;
  DrawResult Draw(int count, std::span<const ShardRange> ranges, std::vector<Window>& out) override;

 private:
  const std::uint64_t window_steps_;
  std::vector<std::uint64_t> next_start_;  // [S] start of the shard's next window
  std::deque<Window> queue_;
  std::int64_t drawn_ = 0, lost_ = 0;
};

// Writing goes on while fewer than 2 * batch_windows complete windows are undelivered, all shards
// together, so that training stays close to on-policy. Nothing undelivered is overwritten when a
// shard holds so many windows and the chunk that is being written besides: FifoReplayRows
// (lib/run/run_config.h), which the run's settings obey. That is of one ring's rows: the fewer than
// T rows behind the last window of a ring that ends take room that no window uses.
Limiter FifoLimiter(int batch_windows);

}  // namespace tetrion
