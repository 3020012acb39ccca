#include "lib/replay/selectors/uniform.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "lib/replay/gate.h"
#include "tests/lib/replay/selectors/lane_window_suite.h"

namespace tetrion {
namespace {

using testing::ExpectUniform;
using testing::Key;
using testing::KeyOf;

struct MakeUniform {
  static std::unique_ptr<Selector> Make(const UniformSelector::Config& config) {
    return std::make_unique<UniformSelector>(config);
  }
};

std::vector<Window> DrawSome(UniformSelector& selector, int count,
                             const std::vector<ShardRange>& ranges) {
  std::vector<Window> out;
  EXPECT_TRUE(selector.Draw(count, ranges, out).ready);
  return out;
}

TEST(UniformSelectorTest, EveryWindowOfEveryShardIsDrawnEquallyOften) {
  // Windows of 5 rows: 16, none, one and 40 starts.
  const std::vector<ShardRange> ranges = {{100, 120}, {0, 4}, {7, 12}, {1'000'000, 1'000'044}};
  for (const std::uint64_t seed : {1, 2, 3}) {
    UniformSelector selector({.shards = 4, .window_rows = 5, .seed = seed});
    std::map<Key, int> drawn;
    constexpr int kDraws = 57 * 1000;
    for (int i = 0; i < kDraws / 100; ++i) {
      for (const Window& window : DrawSome(selector, 100, ranges)) ++drawn[KeyOf(window)];
    }
    ExpectUniform(drawn, 16 + 1 + 40, kDraws);
  }
}

TEST(UniformSelectorTest, WindowsOfOneLaneCoverEveryLaneEquallyOften) {
  const std::vector<ShardRange> ranges = {{3, 10}, {0, 6}};  // 3 and 2 starts
  UniformSelector selector({.shards = 2, .window_rows = 5, .lanes = 7});
  std::map<Key, int> drawn;
  constexpr int kDraws = 35 * 1000;
  for (int i = 0; i < kDraws; ++i) ++drawn[KeyOf(DrawSome(selector, 1, ranges)[0])];
  ExpectUniform(drawn, 5 * 7, kDraws);
}

TEST(UniformSelectorTest, SameSeedDrawsTheSameAndAnotherDoesNot) {
  const std::vector<ShardRange> ranges = {{0, 1000}};
  const auto first_draws = [&](std::uint64_t seed) {
    UniformSelector selector({.window_rows = 5, .lanes = 4, .seed = seed});
    std::vector<Key> keys;
    for (int i = 0; i < 3; ++i) {
      for (const Window& window : DrawSome(selector, 8, ranges)) keys.push_back(KeyOf(window));
    }
    return keys;
  };
  EXPECT_EQ(first_draws(5), first_draws(5));
  EXPECT_NE(first_draws(5), first_draws(6));
}

TEST(UniformSelectorTest, IsNotReadyUntilOneWindowIsThere) {
  UniformSelector selector({.window_rows = 5});
  std::vector<Window> out;
  const std::vector<ShardRange> short_range = {{2, 6}};
  EXPECT_FALSE(selector.Draw(1, short_range, out).ready);
  EXPECT_TRUE(out.empty());
  const std::vector<ShardRange> enough = {{2, 7}};
  EXPECT_TRUE(selector.Draw(3, enough, out).ready);
  EXPECT_EQ(out.size(), 3U);
}

TEST(UniformSelectorTest, CountsEveryStartAndLaneOnceAsItArrivesAndAsItGoes) {
  UniformSelector selector({.shards = 2, .window_rows = 5, .lanes = 3});
  const auto expect = [&](std::int64_t inserted, std::int64_t size) {
    EXPECT_EQ(selector.counts().inserted, inserted);
    EXPECT_EQ(selector.counts().size, size);
  };
  selector.OnCommit(0, 4);
  expect(0, 0);
  selector.OnCommit(0, 5);
  expect(3, 3);
  selector.OnCommit(1, 8);
  expect(3 + 12, 3 + 12);
  selector.OnReclaim(1, 2);
  expect(15, 3 + 6);
  selector.OnReclaim(1, 8);  // more than there were starts
  expect(15, 3);
  selector.OnCommit(1, 12);
  expect(15, 3);
  selector.OnCommit(1, 13);
  expect(18, 6);
  (void)DrawSome(selector, 4, {{0, 5}, {8, 13}});
  EXPECT_EQ(selector.counts().drawn, 4);
  EXPECT_EQ(selector.counts().size, 6);
}

// The limiter's bounds hold at every moment, and neither end waits for ever.
TEST(UniformSelectorTest, SamplesPerInsertKeepsWriterAndReaderInStep) {
  constexpr int kWindowRows = 4, kStride = 2, kBatch = 3;
  ReplayGate gate(
      {.capacity_rows = 64, .commit_stride = kStride},
      std::make_unique<UniformSelector>(UniformSelector::Config{.window_rows = kWindowRows}),
      Limiter::SamplesPerInsert(2.0, 5, /*ahead=*/4.0, /*behind=*/6.0));
  std::int64_t drawn = 0;
  for (int round = 0; round < 1000; ++round) {
    bool moved = false;
    while (const Chunk chunk = gate.Acquire(0, 1, 0)) {
      gate.Commit(chunk);
      moved = true;
    }
    while (const ReadLease lease = gate.OpenLease(kBatch, kWindowRows, 0)) {
      drawn += kBatch;
      moved = true;
      const auto inserted = static_cast<double>(gate.Stats(0).committed_rows) - kWindowRows + 1;
      EXPECT_LE(static_cast<double>(drawn), 2.0 * (inserted - 5) + 4);
      EXPECT_GT(static_cast<double>(drawn), 2.0 * (inserted - kStride - 5) - 6);
    }
    ASSERT_TRUE(moved);
  }
  EXPECT_GT(gate.Stats(0).committed_rows, 1000U);
}

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Uniform, LaneWindowSuite, MakeUniform);
}  // namespace testing

}  // namespace tetrion
