#include "lib/envs/lane_accounts.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tetrion {
namespace {

constexpr std::size_t kLanes = 3;
constexpr double kWhereFloatsEnd = 16'777'216.0;  // 2^24: the next float is 2 more

// Lanes far into an episode, and the row that their actions are counted into.
struct LongEpisodes {
  LongEpisodes() {
    row.reward = reward.data();
    row.flags = flags.data();
    row.cont = cont.data();
    row.episode_id = episode_id.data();
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      accounts.Put(lane, {.id = 1, .attempt = 0, .max_steps = 100}, {0, 0, kWhereFloatsEnd},
                   LaneAccounts::Phase::kRunning);
    }
  }

  LaneAccounts accounts{kLanes};
  RowView row;
  std::array<float, kLanes> reward, cont;
  std::array<std::uint8_t, kLanes> flags;
  std::array<std::int32_t, kLanes> episode_id;
};

TEST(LaneAccounts, ALongEpisodesReturnGrowsByEveryReward) {
  LongEpisodes lanes;
  for (int action = 0; action < 10; ++action) {
    lanes.accounts.Count(0, {.reward = 1.0F}, lanes.row);
  }
  EXPECT_EQ(lanes.accounts.account(0).episode_return, kWhereFloatsEnd + 10);
  EXPECT_EQ(lanes.accounts.account(1).episode_return, kWhereFloatsEnd) << "another lane";
}

TEST(LaneAccounts, NeighboursReturnsGrowByEveryRewardAndAreShownAsTheNearestFloats) {
  LongEpisodes lanes;
  LaneOutcomes<kLanes> outcomes = {.reward = {1.0F, 0.5F, -0.1F}};
  for (int action = 0; action < 10; ++action) {
    lanes.accounts.CountRun(0, kLanes, outcomes, {}, lanes.row);
  }
  EXPECT_EQ(lanes.accounts.account(0).episode_return, kWhereFloatsEnd + 10);
  EXPECT_EQ(lanes.accounts.account(1).episode_return, kWhereFloatsEnd + 5);
  const std::array<int, kLanes> all = {0, 1, 2};
  std::array<float, kLanes> episode_return;
  std::array<std::int32_t, kLanes> length, lines;
  lanes.accounts.Show(all, {episode_return.data(), length.data(), lines.data()});
  EXPECT_EQ(episode_return[0], kWhereFloatsEnd + 10);
  EXPECT_EQ(episode_return[1], kWhereFloatsEnd + 4) << "5 is between two floats";
  EXPECT_EQ(episode_return[2], kWhereFloatsEnd - 1);
  EXPECT_EQ(length[2], 10);
}

}  // namespace
}  // namespace tetrion
