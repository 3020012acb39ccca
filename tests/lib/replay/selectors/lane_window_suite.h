#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "lib/replay/selectors/uniform.h"

// What every selector does that draws windows of one lane from what is there. `Factory` has
// Make(UniformSelector::Config) -> unique_ptr<Selector>.
namespace tetrion::testing {

using Key = std::tuple<int, std::uint64_t, int>;

inline Key KeyOf(const Window& window) {
  return {window.shard, window.start, window.lane};
}

// Pearson's statistic of the draws against equal chances of `cells` windows. The bound is five
// deviations above the mean of the distribution, and the seeds are fixed: no luck is involved.
inline void ExpectUniform(const std::map<Key, int>& drawn, std::size_t cells, int draws) {
  ASSERT_EQ(drawn.size(), cells) << "a window was never drawn";
  const double expected = static_cast<double>(draws) / static_cast<double>(cells);
  double chi2 = 0;
  for (const auto& [key, count] : drawn) chi2 += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(cells - 1);
  EXPECT_LT(chi2, freedom + 5 * std::sqrt(2 * freedom));
}

template <class Factory>
class LaneWindowSuite : public ::testing::Test {};
TYPED_TEST_SUITE_P(LaneWindowSuite);

// Behind a gate whose writer laps small shards by chance: whatever is drawn is committed, not yet
// given up and of a lane that exists, and the counters are those of the ranges.
TYPED_TEST_P(LaneWindowSuite, DrawnWindowsLieInWhatTheGateHolds) {
  constexpr int kShards = 3, kWindowRows = 6, kLanes = 5, kCapacity = 24, kStride = 4;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto made = TypeParam::Make(
        {.shards = kShards, .window_rows = kWindowRows, .lanes = kLanes, .seed = seed});
    const Selector& selector = *made;
    ReplayGate gate({.shards = kShards, .capacity_rows = kCapacity, .commit_stride = kStride},
                    std::move(made), Limiter::Unlimited());
    for (std::uint64_t turn = 0; turn < 400; ++turn) {
      const PhiloxBlock draw = PhiloxDraw(seed, turn, 0, PhiloxPurpose::kInitialState);
      const auto shard = static_cast<int>(BoundedDraw(draw.word[0], kShards));
      const Chunk chunk = gate.Acquire(shard, 1 + static_cast<int>(draw.word[1] % kStride), 0);
      ASSERT_TRUE(chunk);
      gate.Commit(chunk);
      if (draw.word[2] % 16 == 0) gate.BeginGeneration(shard);
      std::int64_t starts = 0;
      for (int s = 0; s < kShards; ++s) {
        starts += std::max<std::int64_t>(
            0, static_cast<std::int64_t>(gate.Stats(s).valid_rows) - kWindowRows + 1);
      }
      ASSERT_EQ(selector.counts().size, starts * kLanes);
      const ReadLease lease = gate.OpenLease(8, kWindowRows, 0);
      ASSERT_EQ(static_cast<bool>(lease), starts > 0);
      for (const Window& window : lease.windows()) {
        const ShardStats stats = gate.Stats(window.shard);
        EXPECT_GE(window.start, stats.committed_rows - stats.valid_rows);
        EXPECT_LE(window.start + kWindowRows, stats.committed_rows);
        EXPECT_GE(window.lane, 0);
        EXPECT_LT(window.lane, kLanes);
      }
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(LaneWindowSuite, DrawnWindowsLieInWhatTheGateHolds);

}  // namespace tetrion::testing
