#include "lib/replay/selectors/online.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "lib/replay/gate.h"
#include "tests/lib/replay/selectors/lane_window_suite.h"

namespace tetrion {
namespace {

using testing::Key;
using testing::KeyOf;

struct MakeOnline {
  static std::unique_ptr<Selector> Make(const UniformSelector::Config& config) {
    return std::make_unique<OnlineSelector>(OnlineSelector::Config{.uniform = config});
  }
};

std::vector<Key> DrawSome(OnlineSelector& selector, int count,
                          const std::vector<ShardRange>& ranges) {
  std::vector<Window> out;
  EXPECT_TRUE(selector.Draw(count, ranges, out).ready);
  std::vector<Key> keys;
  for (const Window& window : out) keys.push_back(KeyOf(window));
  return keys;
}

TEST(OnlineSelectorTest, EveryFreshWindowOfEveryLaneIsDrawnOnceOldestFirst) {
  OnlineSelector selector({.uniform = {.shards = 2, .window_rows = 5, .lanes = 3}, .share = 1.0});
  selector.OnCommit(1, 4);  // not a window yet
  selector.OnCommit(0, 5);
  selector.OnCommit(1, 12);
  const std::vector<ShardRange> ranges = {{0, 5}, {0, 12}};
  const std::vector<Key> fresh = {{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {1, 0, 0}, {1, 0, 1},
                                  {1, 0, 2}, {1, 5, 0}, {1, 5, 1}, {1, 5, 2}};
  std::vector<Key> drawn = DrawSome(selector, 4, ranges);
  for (const Key& key : DrawSome(selector, 5, ranges)) drawn.push_back(key);
  EXPECT_EQ(drawn, fresh);
  selector.OnCommit(1, 15);  // row 14 completes [10, 15)
  EXPECT_EQ(DrawSome(selector, 1, {{0, 5}, {0, 15}}), (std::vector<Key>{{1, 10, 0}}));
}

TEST(OnlineSelectorTest, WindowsOfAllLanesAreOneItemAStart) {
  OnlineSelector selector({.uniform = {.window_rows = 5}, .share = 1.0});
  selector.OnCommit(0, 10);
  EXPECT_EQ(DrawSome(selector, 2, {{0, 10}}), (std::vector<Key>{{0, 0, -1}, {0, 5, -1}}));
}

TEST(OnlineSelectorTest, DrawsAreFilledUpWithUniformWindows) {
  const UniformSelector::Config uniform = {.window_rows = 5, .lanes = 7};
  OnlineSelector selector({.uniform = uniform, .share = 0.25});
  selector.OnCommit(0, 15);
  std::map<Key, int> drawn;
  constexpr int kDraws = 1000, kBatch = 80;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<Key> keys = DrawSome(selector, kBatch, {{0, 15}});
    ASSERT_EQ(keys.size(), static_cast<std::size_t>(kBatch));
    // The first two draws take the 20 and 1 queued windows, all others none.
    for (std::size_t k = i == 0 ? 20 : i == 1 ? 1 : 0; k < keys.size(); ++k) ++drawn[keys[k]];
  }
  testing::ExpectUniform(drawn, 11 * 7, kDraws * kBatch - 21);
}

TEST(OnlineSelectorTest, ShareOfQueuedWindowsIsBoundedInSmallDrawsAndAfterAPause) {
  OnlineSelector selector({.uniform = {.window_rows = 2}, .share = 0.25});
  std::uint64_t rows = 2;
  selector.OnCommit(0, rows);
  EXPECT_EQ(DrawSome(selector, 4, {{0, rows}})[0], Key(0, 0, -1));
  // A pause: nothing is queued. What these draws might have taken is not saved up.
  for (int i = 0; i < 100; ++i) (void)DrawSome(selector, 1, {{0, rows}});
  rows = 1'000'000;
  selector.OnCommit(0, rows);
  constexpr int kDraws = 400;
  int queued = 0;
  for (int i = 0; i < kDraws; ++i) {  // twice as many fresh windows come as are drawn
    rows += 4;
    selector.OnCommit(0, rows);
    // A uniform draw may hit one of the newest by chance.
    if (std::get<1>(DrawSome(selector, 1, {{0, rows}})[0]) + 8 >= rows) ++queued;
  }
  EXPECT_GE(queued, kDraws / 4);
  EXPECT_LE(queued, kDraws / 4 + 2);
}

TEST(OnlineSelectorTest, ShareOfQueuedWindowsIsReachedByDrawsOfAnySize) {
  for (const int count : {1, 3, 4, 6, 7, 16}) {
    OnlineSelector selector({.uniform = {.window_rows = 2}, .share = 0.25});
    std::uint64_t rows = 1'000'000;
    const auto fresh = static_cast<std::uint64_t>(2 * count);
    selector.OnCommit(0, rows);
    int queued = 0, drawn = 0;
    for (; drawn < 4000; drawn += count) {
      rows += fresh;
      selector.OnCommit(0, rows);
      for (const Key& key : DrawSome(selector, count, {{0, rows}})) {
        if (std::get<1>(key) + fresh + 4 >= rows) ++queued;
      }
    }
    EXPECT_NEAR(queued, drawn / 4, 3) << count << " windows a draw";
  }
}

// Where rows come faster than the share takes them, what it takes is fresh all the same: the share
// is small, or few rows are trained for each that comes.
TEST(OnlineSelectorTest, QueuedWindowsAreFreshHoweverManyRowsCome) {
  constexpr int kRows = 65, kBatch = 16;
  for (const double share : {0.25, 0.0625}) {
    OnlineSelector selector({.uniform = {.window_rows = kRows, .lanes = 8}, .share = share});
    const auto queued = static_cast<std::size_t>(share * kBatch);
    std::uint64_t rows = 0;
    for (int i = 0; i < 200; ++i) {
      rows += 43;  // of 8 lanes: three are trained for each
      selector.OnCommit(0, rows);
      if (rows < 4 * kRows) continue;
      const std::vector<Key> keys = DrawSome(selector, kBatch, {{0, rows}});
      for (std::size_t k = 0; k < queued; ++k) {
        ASSERT_LE(rows - std::get<1>(keys[k]), 5U * kRows) << "draw " << i << ", share " << share;
      }
    }
  }
}

TEST(OnlineSelectorTest, FullQueueDropsItsOldestWindows) {
  OnlineSelector selector({.uniform = {.window_rows = 5}, .share = 1.0, .queued_starts = 3});
  selector.OnCommit(0, 50);
  EXPECT_EQ(DrawSome(selector, 3, {{0, 50}}),
            (std::vector<Key>{{0, 35, -1}, {0, 40, -1}, {0, 45, -1}}));
}

TEST(OnlineSelectorTest, FullQueueDropsTheOldestOfAllShardsAndRowsThatAreGoneMakeRoom) {
  OnlineSelector selector(
      {.uniform = {.shards = 2, .window_rows = 5}, .share = 1.0, .queued_starts = 3});
  selector.OnCommit(0, 5);
  selector.OnCommit(1, 10);
  selector.OnCommit(0, 10);  // a fourth: 0 of shard 0 goes
  selector.OnReclaim(1, 1);  // and 0 of shard 1
  selector.OnCommit(0, 15);  // nothing has to go for it
  EXPECT_EQ(DrawSome(selector, 3, {{0, 15}, {1, 10}}),
            (std::vector<Key>{{1, 5, -1}, {0, 5, -1}, {0, 10, -1}}));
}

TEST(OnlineSelectorTest, QueuesOfManyShardsAreOneListInTheOrderOfTheirRows) {
  constexpr int kShards = 7, kRows = 5;
  constexpr std::size_t kQueued = 9;
  OnlineSelector selector({.uniform = {.shards = kShards, .window_rows = kRows},
                           .share = 1.0,
                           .queued_starts = kQueued});
  std::vector<ShardRange> ranges(kShards, {.lo = 0, .hi = 0});
  std::vector<std::uint64_t> next(kShards, 0);
  std::deque<Key> queued;
  const auto commit = [&](int shard, std::uint64_t rows) {
    const auto s = static_cast<std::size_t>(shard);
    ranges[s].hi += rows;
    selector.OnCommit(shard, ranges[s].hi);
    for (; next[s] + kRows <= ranges[s].hi; next[s] += kRows) {
      if (queued.size() == kQueued) queued.pop_front();
      queued.push_back({shard, next[s], -1});
    }
  };
  commit(0, kRows);  // never reclaimed: uniform draws have a window always
  for (std::uint64_t step = 0; step < 5000; ++step) {
    const PhiloxBlock draw = PhiloxDraw(1, step, 0, PhiloxPurpose::kSampler);
    const int shard = static_cast<int>(draw.word[0] % kShards);
    const auto s = static_cast<std::size_t>(shard);
    if (draw.word[1] % 4 < 2) {
      commit(shard, 1 + draw.word[2] % 8);
    } else if (draw.word[1] % 4 == 2 && shard > 0) {
      ranges[s].lo += draw.word[2] % (ranges[s].hi - ranges[s].lo + 1);
      selector.OnReclaim(shard, ranges[s].lo);
      std::erase_if(queued, [&](const Key& key) {
        return std::get<0>(key) == shard && std::get<1>(key) < ranges[s].lo;
      });
    } else {
      const std::vector<Key> drawn =
          DrawSome(selector, 1 + static_cast<int>(draw.word[2] % 3), ranges);
      for (std::size_t i = 0; i < drawn.size() && !queued.empty(); ++i, queued.pop_front()) {
        ASSERT_EQ(drawn[i], queued.front()) << "step " << step;
      }
    }
  }
}

TEST(OnlineSelectorTest, RowsThatAreGoneAndGenerationsThatBeginLeaveOnlyWholeFreshWindows) {
  OnlineSelector selector({.uniform = {.shards = 2, .window_rows = 5}, .share = 1.0});
  selector.OnCommit(0, 12);
  selector.OnCommit(1, 5);
  selector.OnReclaim(0, 1);
  selector.OnGeneration(0, 12);  // another ring's rows begin at 12: [10, 15) is no window of one
  selector.OnCommit(0, 17);
  EXPECT_EQ(DrawSome(selector, 3, {{1, 17}, {0, 5}}),
            (std::vector<Key>{{0, 5, -1}, {1, 0, -1}, {0, 12, -1}}));
}

TEST(OnlineSelectorTest, CountsItemsAsUniformDrawsDo) {
  OnlineSelector selector({.uniform = {.window_rows = 5, .lanes = 2}, .share = 1.0});
  selector.OnCommit(0, 8);
  (void)DrawSome(selector, 5, {{0, 8}});  // two queued, three uniform
  const ItemCounts counts = selector.counts();
  EXPECT_EQ(counts.inserted, 8);
  EXPECT_EQ(counts.size, 8);
  EXPECT_EQ(counts.drawn, 5);
  EXPECT_EQ(counts.lost, 0);
}

// W = 0.5 windows a row and L = 10 rows a window: one window in five is a queued one.
TEST(OnlineSelectorTest, ShareOfQueuedWindowsFollowsFromTheRatioOfDrawsToRows) {
  constexpr int kRows = 10, kLanes = 4, kBatch = 4;
  auto made = std::make_unique<OnlineSelector>(
      OnlineSelector::Config{.uniform = {.window_rows = kRows, .lanes = kLanes}});
  ReplayGate gate({.capacity_rows = 200, .commit_stride = 2}, std::move(made),
                  Limiter::SamplesPerInsert(0.5, kLanes, kBatch, kBatch));
  std::int64_t drawn = 0, queued = 0;
  std::uint64_t next = 0;
  int lane = 0;
  while (drawn < 20'000) {
    while (const Chunk chunk = gate.Acquire(0, 2, 0)) gate.Commit(chunk);
    while (const ReadLease lease = gate.OpenLease(kBatch, kRows, 0)) {
      for (const Window& window : lease.windows()) {
        ++drawn;
        if (window.start != next || window.lane != lane) continue;
        ++queued;
        lane = (lane + 1) % kLanes;
        if (lane == 0) next += kRows;
      }
    }
  }
  const double share = static_cast<double>(queued) / static_cast<double>(drawn);
  EXPECT_NEAR(share, 1.0 / (kRows * 0.5), 0.01);
}

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Online, LaneWindowSuite, MakeOnline);
}  // namespace testing

}  // namespace tetrion
