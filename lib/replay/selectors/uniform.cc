#include "lib/replay/selectors/uniform.h"

#include <algorithm>
#include <limits>

#include "lib/core/check.h"
#include "lib/core/philox.h"

namespace tetrion {

UniformSelector::UniformSelector(const Config& config)
    : config_(config), held_(static_cast<std::size_t>(config.shards)) {
  TETRION_CHECK(config.window_rows > 0 && config.lanes >= 0, "a window has at least one row");
}

std::uint64_t UniformSelector::Starts(const ShardRange& range) const {
  const std::uint64_t ends = range.lo + static_cast<std::uint64_t>(config_.window_rows) - 1;
  return range.hi > ends ? range.hi - ends : 0;
}

void UniformSelector::OnCommit(int shard, std::uint64_t committed) {
  const ShardRange& held = held_[static_cast<std::size_t>(shard)];
  const std::int64_t before = counts_.size;
  Resize(shard, {.lo = held.lo, .hi = std::max(held.hi, committed)});
  counts_.inserted += counts_.size - before;
}

void UniformSelector::OnReclaim(int shard, std::uint64_t valid_lo) {
  Resize(shard, {.lo = valid_lo, .hi = held_[static_cast<std::size_t>(shard)].hi});
}

void UniformSelector::Resize(int shard, const ShardRange& range) {
  ShardRange& held = held_[static_cast<std::size_t>(shard)];
  const std::int64_t items_a_start = std::max(config_.lanes, 1);
  counts_.size += items_a_start * (static_cast<std::int64_t>(Starts(range)) -
                                   static_cast<std::int64_t>(Starts(held)));
  held = range;
}

DrawResult UniformSelector::Draw(int count, std::span<const ShardRange> ranges,
                                 std::vector<Window>& out) {
  std::uint64_t starts = 0;
  for (const ShardRange& range : ranges) starts += Starts(range);
  const DrawResult result = {.ready = starts > 0,
                             .have = static_cast<std::int64_t>(starts) * std::max(config_.lanes, 1),
                             .need = 1};
  if (!result.ready) return result;
  TETRION_CHECK(starts <= std::numeric_limits<std::uint32_t>::max(), "a draw has 32 bits");
  for (int i = 0; i < count; ++i) {
    const PhiloxBlock draw =
        PhiloxDraw(config_.seed, draws_, static_cast<std::uint32_t>(i), PhiloxPurpose::kSampler);
    Window window = WindowAt(BoundedDraw(draw.word[0], static_cast<std::uint32_t>(starts)), ranges);
    if (config_.lanes > 0) {
      window.lane =
          static_cast<int>(BoundedDraw(draw.word[1], static_cast<std::uint32_t>(config_.lanes)));
    }
    out.push_back(window);
  }
  ++draws_;
  counts_.drawn += count;
  return result;
}

// Window number `start` of all shards' windows, counted shard by shard.
Window UniformSelector::WindowAt(std::uint64_t start, std::span<const ShardRange> ranges) const {
  int shard = 0;
  for (const ShardRange& range : ranges) {
    const std::uint64_t starts = Starts(range);
    if (start < starts) return {.shard = shard, .start = range.lo + start};
    start -= starts;
    ++shard;
  }
  TETRION_CHECK(false, "a number below the sum of all starts");
  return {};
}

}  // namespace tetrion
