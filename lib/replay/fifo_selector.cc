#include "lib/replay/fifo_selector.h"

#include <algorithm>

#include "lib/core/check.h"

namespace tetrion {
namespace {

// "No base yet": a shard's first commit sets it.
constexpr std::uint64_t kNoBase = ~std::uint64_t{0};

}  // namespace

FifoSelector::FifoSelector(int shards, int window_steps, int batch_windows)
    : window_steps_(static_cast<std::uint64_t>(window_steps)),
      limit_(2 * static_cast<std::int64_t>(batch_windows)),
      next_start_(static_cast<std::size_t>(shards), 0),
      life_base_(static_cast<std::size_t>(shards), kNoBase) {
  TETRION_CHECK(window_steps > 0 && batch_windows > 0, "a window has at least one transition");
}

void FifoSelector::OnCommit(int shard, std::uint64_t life_base, std::uint64_t committed) {
  const auto s = static_cast<std::size_t>(shard);
  if (life_base_[s] != life_base) {
    life_base_[s] = life_base;
    next_start_[s] = life_base;
  }
  while (next_start_[s] + window_steps_ < committed) {
    queue_.push_back({.shard = shard, .start = next_start_[s]});
    next_start_[s] += window_steps_;
  }
}

void FifoSelector::OnReclaim(int shard, std::uint64_t valid_lo) {
  overwritten_ += static_cast<std::int64_t>(std::erase_if(queue_, [&](const Window& window) {
    return window.shard == shard && window.start < valid_lo;
  }));
}

void FifoSelector::OnNewLife(int shard) {
  std::erase_if(queue_, [shard](const Window& window) { return window.shard == shard; });
  life_base_[static_cast<std::size_t>(shard)] = kNoBase;
}

DrawResult FifoSelector::Draw(int count, std::span<const ShardRange>, std::vector<Window>& out) {
  const DrawResult result = {.ready = undelivered() >= count, .have = undelivered(), .need = count};
  if (!result.ready) return result;
  out.insert(out.end(), queue_.begin(), queue_.begin() + count);
  queue_.erase(queue_.begin(), queue_.begin() + count);
  return result;
}

}  // namespace tetrion
