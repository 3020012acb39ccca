#include "lib/replay/selectors/fifo.h"

#include <algorithm>

#include "lib/core/check.h"

namespace tetrion {

FifoSelector::FifoSelector(int shards, int window_steps)
    : window_steps_(static_cast<std::uint64_t>(window_steps)),
      next_start_(static_cast<std::size_t>(shards), 0) {
  TETRION_CHECK(window_steps > 0, "a window has at least one transition");
}

void FifoSelector::OnCommit(int shard, std::uint64_t committed) {
  std::uint64_t& next = next_start_[static_cast<std::size_t>(shard)];
  while (next + window_steps_ < committed) {
    queue_.push_back({.shard = shard, .start = next});
    next += window_steps_;
  }
}

void FifoSelector::OnReclaim(int shard, std::uint64_t valid_lo) {
  lost_ += static_cast<std::int64_t>(std::erase_if(queue_, [&](const Window& window) {
    return window.shard == shard && window.start < valid_lo;
  }));
}

// Windows of the old ring stay: their rows are all there until others take their place.
void FifoSelector::OnGeneration(int shard, std::uint64_t base) {
  next_start_[static_cast<std::size_t>(shard)] = base;
}

ItemCounts FifoSelector::counts() const {
  const auto size = static_cast<std::int64_t>(queue_.size());
  return {.inserted = drawn_ + size, .drawn = drawn_, .size = size, .lost = lost_};
}

DrawResult FifoSelector::Draw(int count, std::span<const ShardRange>, std::vector<Window>& out) {
  const auto have = static_cast<std::int64_t>(queue_.size());
  if (have < count) return {.ready = false, .have = have, .need = count};
  out.insert(out.end(), queue_.begin(), queue_.begin() + count);
  queue_.erase(queue_.begin(), queue_.begin() + count);
  drawn_ += count;
  return {.ready = true, .have = have, .need = count};
}

Limiter FifoLimiter(int batch_windows) {
  TETRION_CHECK(batch_windows > 0, "a batch has at least one window");
  return Limiter::UndrawnItems(2 * std::int64_t{batch_windows});
}

}  // namespace tetrion
