#include "lib/envs/lane_runs.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tetrion {
namespace {

using Runs = std::vector<std::pair<int, std::size_t>>;

Runs RunsOf(const std::vector<int>& lanes, std::size_t most) {
  Runs runs;
  ForEachRun(lanes, most, [&runs](int first, std::size_t n) { runs.emplace_back(first, n); });
  return runs;
}

TEST(LaneRunsTest, NeighboursGoTogetherAndOthersApart) {
  EXPECT_EQ(RunsOf({}, 4), Runs());
  EXPECT_EQ(RunsOf({7}, 4), (Runs{{7, 1}}));
  EXPECT_EQ(RunsOf({2, 3, 4, 5}, 4), (Runs{{2, 4}}));
  EXPECT_EQ(RunsOf({5, 4, 3}, 4), (Runs{{5, 1}, {4, 1}, {3, 1}}));
  EXPECT_EQ(RunsOf({0, 1, 3, 4, 2}, 8), (Runs{{0, 2}, {3, 2}, {2, 1}}));
}

TEST(LaneRunsTest, AStretchIsCutWhereItIsTooLong) {
  EXPECT_EQ(RunsOf({0, 1, 2, 3, 4, 5, 6}, 3), (Runs{{0, 3}, {3, 3}, {6, 1}}));
  EXPECT_EQ(RunsOf({0, 1, 9, 10, 11, 12}, 3), (Runs{{0, 2}, {9, 3}, {12, 1}}));
}

}  // namespace
}  // namespace tetrion
