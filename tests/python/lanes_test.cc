#include "python/src/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lib/envs/tetris_record.h"

namespace tetrion {
namespace {

std::vector<int> Range(int first, int end) {
  std::vector<int> envs(static_cast<std::size_t>(end - first));
  std::iota(envs.begin(), envs.end(), first);
  return envs;
}

// An action that depends on environment and step only.
std::int32_t ActionOf(std::uint64_t seed, int step) {
  return static_cast<std::int32_t>((seed * 7 + static_cast<std::uint64_t>(step) * 5) % 8);
}

TEST(Lanes, AnEnvironmentPlaysTheSameWhoeverIsBesideIt) {
  Lanes one({.obs = "dict"}, 1);
  Lanes many({.obs = "dict"}, 5);
  one.Seed(0, 13);
  for (const int env : Range(0, 5)) many.Seed(env, static_cast<std::uint64_t>(10 + env));
  const std::vector<int> all = Range(0, 5);
  for (int step = 0; step < 3000; ++step) {
    one.SetAction(0, ActionOf(13, step));
    for (const int env : all) {
      many.SetAction(env, ActionOf(static_cast<std::uint64_t>(10 + env), step));
    }
    one.Play({all.data(), 1});
    many.Play(all);
    const StepColumns& alone = one.columns();
    const StepColumns& beside = many.columns();
    ASSERT_EQ(alone.reward[0], beside.reward[3]) << step;
    ASSERT_EQ(alone.terminated[0], beside.terminated[3]) << step;
    ASSERT_EQ(
        std::memcmp(alone.obs.data(), beside.obs.data() + 3 * alone.obs_bytes, alone.obs_bytes), 0)
        << step;
  }
}

TEST(Lanes, AnEndedEpisodeIsFollowedByTheNextOneWhateverTheAction) {
  Lanes lanes({.obs = "compact", .max_steps = 3}, 1);
  lanes.Seed(0, 1);
  const std::vector<int> env = {0};
  TetrisRecord first = {}, second = {};
  for (int episode = 0; episode < 2; ++episode) {
    lanes.Play(env);
    EXPECT_EQ(lanes.columns().reward[0], 0.0F);
    EXPECT_EQ(lanes.columns().episode_length[0], 0);
    std::memcpy(episode == 0 ? &first : &second, lanes.record(0), sizeof(first));
    for (int step = 1; step <= 3; ++step) {
      lanes.SetAction(0, 7);
      lanes.Play(env);
      EXPECT_EQ(lanes.columns().episode_length[0], step);
      EXPECT_EQ(lanes.columns().truncated[0], step == 3 ? 1 : 0);
    }
  }
  EXPECT_NE(first.queue, second.queue) << "both episodes got the same pieces";
  lanes.Seed(0, 1);
  lanes.Play(env);
  EXPECT_EQ(std::memcmp(lanes.record(0), &first, sizeof(first)), 0) << "seeding starts over";
}

TEST(Lanes, RestartCutsAnEpisode) {
  Lanes lanes({.env = "cartpole"}, 1);
  lanes.Seed(0, 1);
  const std::vector<int> env = {0};
  for (int i = 0; i < 4; ++i) lanes.Play(env);
  EXPECT_EQ(lanes.columns().episode_length[0], 3);
  EXPECT_EQ(lanes.columns().episode_return[0], 3.0F);
  lanes.Restart(0);
  lanes.Play(env);
  EXPECT_EQ(lanes.columns().episode_length[0], 0);
  EXPECT_EQ(lanes.columns().terminated[0] + lanes.columns().truncated[0], 0);
}

TEST(Lanes, AMaskSaysWhatAPlacementMayBe) {
  Lanes lanes({.env = "tetris-placement", .obs = "afterstates"}, 3);
  const std::vector<int> all = Range(0, 3);
  for (const int env : all) lanes.Seed(env, static_cast<std::uint64_t>(env));
  lanes.Play(all);
  const StepColumns& columns = lanes.columns();
  ASSERT_EQ(columns.mask_bytes, 40U);
  int illegal = 0;
  for (std::size_t env = 0; env < 3; ++env) {
    for (std::size_t a = 0; a < 40; ++a) {
      // A legal placement's row of the view is never all zeros.
      const float* row =
          reinterpret_cast<const float*>(columns.obs.data() + env * columns.obs_bytes) + 16 * a;
      const bool any = std::any_of(row, row + 16, [](float x) { return x != 0.0F; });
      EXPECT_EQ(columns.action_mask[env * 40 + a], any ? 1 : 0);
      illegal += any ? 0 : 1;
    }
  }
  EXPECT_GT(illegal, 0);
}

}  // namespace
}  // namespace tetrion
