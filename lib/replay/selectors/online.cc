#include "lib/replay/selectors/online.h"

#include <algorithm>
#include <cmath>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kNoFront = ~std::uint64_t{0};
// Queued windows wait for at most so many draws: later they are not fresh any more.
constexpr double kDrawsAwaited = 4;

}  // namespace

OnlineSelector::OnlineSelector(const Config& config)
    : config_(config),
      uniform_(config.uniform),
      next_start_(static_cast<std::size_t>(config.uniform.shards), 0),
      queues_(static_cast<std::size_t>(config.uniform.shards)),
      front_number_(static_cast<std::size_t>(config.uniform.shards), kNoFront) {
  TETRION_CHECK(config.share > 0 && config.share <= 1, "a share of the drawn windows");
  TETRION_CHECK(config.queued_starts > 0, "a queue holds at least one start");
}

void OnlineSelector::OnCommit(int shard, std::uint64_t committed) {
  uniform_.OnCommit(shard, committed);
  const auto rows = static_cast<std::uint64_t>(config_.uniform.window_rows);
  const auto s = static_cast<std::size_t>(shard);
  std::uint64_t& next = next_start_[s];
  for (; next + rows <= committed; next += rows) {
    if (queued_ == config_.queued_starts) DropFront(Oldest());
    if (queues_[s].empty()) front_number_[s] = pushed_;
    queues_[s].push_back({.next = {.shard = shard, .start = next, .lane = 0}, .number = pushed_++});
    ++queued_;
  }
}

void OnlineSelector::OnReclaim(int shard, std::uint64_t valid_lo) {
  uniform_.OnReclaim(shard, valid_lo);
  const auto s = static_cast<std::size_t>(shard);
  while (!queues_[s].empty() && queues_[s].front().next.start < valid_lo) DropFront(s);
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
  DropStale(count);
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

std::size_t OnlineSelector::Oldest() const {
  const auto oldest = std::min_element(front_number_.begin(), front_number_.end());
  TETRION_CHECK(*oldest != kNoFront, "a start is queued");
  return static_cast<std::size_t>(oldest - front_number_.begin());
}

void OnlineSelector::DropFront(std::size_t shard) {
  std::deque<Queued>& queue = queues_[shard];
  queue.pop_front();
  front_number_[shard] = queue.empty() ? kNoFront : queue.front().number;
  --queued_;
}

void OnlineSelector::DropStale(int count) {
  // Shards may complete a window all at once, hence one of each.
  const double windows = kDrawsAwaited * config_.share * count;
  const auto starts = static_cast<std::size_t>(
      config_.uniform.shards + std::ceil(windows / std::max(config_.uniform.lanes, 1)));
  while (queued_ > starts) DropFront(Oldest());
}

int OnlineSelector::TakeQueued(int most, std::vector<Window>& out) {
  const int lanes = config_.uniform.lanes;
  int taken = 0;
  while (taken < most && queued_ > 0) {
    const std::size_t shard = Oldest();
    Window& next = queues_[shard].front().next;
    do {
      out.push_back({.shard = next.shard, .start = next.start, .lane = lanes > 0 ? next.lane : -1});
      ++taken;
      ++next.lane;
    } while (taken < most && next.lane < lanes);
    if (next.lane >= lanes) DropFront(shard);
  }
  return taken;
}

}  // namespace tetrion
