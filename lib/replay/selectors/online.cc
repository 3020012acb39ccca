#include "lib/replay/selectors/online.h"

#include <algorithm>
#include <cmath>

#include "lib/core/check.h"

namespace tetrion {

OnlineSelector::OnlineSelector(const Config& config)
    : config_(config),
      uniform_(config.uniform),
      next_start_(static_cast<std::size_t>(config.uniform.shards), 0) {
  TETRION_CHECK(config.share > 0 && config.share <= 1, "a share of the drawn windows");
  TETRION_CHECK(config.queued_starts > 0, "a queue holds at least one start");
}

void OnlineSelector::OnCommit(int shard, std::uint64_t committed) {
  uniform_.OnCommit(shard, committed);
  const auto rows = static_cast<std::uint64_t>(config_.uniform.window_rows);
  std::uint64_t& next = next_start_[static_cast<std::size_t>(shard)];
  for (; next + rows <= committed; next += rows) {
    if (queue_.size() == config_.queued_starts) queue_.pop_front();
    queue_.push_back({.shard = shard, .start = next, .lane = 0});
  }
}

void OnlineSelector::OnReclaim(int shard, std::uint64_t valid_lo) {
  uniform_.OnReclaim(shard, valid_lo);
  std::erase_if(queue_, [&](const Window& queued) {
    return queued.shard == shard && queued.start < valid_lo;
  });
}

void OnlineSelector::OnGeneration(int shard, std::uint64_t base) {
  uniform_.OnGeneration(shard, base);
  next_start_[static_cast<std::size_t>(shard)] = base;
}

ItemCounts OnlineSelector::counts() const {
  ItemCounts counts = uniform_.counts();
  counts.drawn += drawn_;
  return counts;
}

DrawResult OnlineSelector::Draw(int count, std::span<const ShardRange> ranges,
                                std::vector<Window>& out) {
  // Whole windows that a draw may not use are not saved up, or the share would be exceeded after a
  // pause; fractions are.
  const double allowed = credit_ + config_.share * count;
  const int queued = TakeQueued(std::min(count, static_cast<int>(allowed)), out);
  credit_ = allowed - std::floor(allowed);
  drawn_ += queued;
  const DrawResult result = uniform_.Draw(count - queued, ranges, out);
  TETRION_CHECK(result.ready || queued == 0, "a queued window lies in the ranges");
  return result;
}

int OnlineSelector::TakeQueued(int most, std::vector<Window>& out) {
  const int lanes = config_.uniform.lanes;
  for (int taken = 0; taken < most; ++taken) {
    if (queue_.empty()) return taken;
    Window& next = queue_.front();
    out.push_back({.shard = next.shard, .start = next.start, .lane = lanes > 0 ? next.lane : -1});
    if (++next.lane >= lanes) queue_.pop_front();
  }
  return most;
}

}  // namespace tetrion
