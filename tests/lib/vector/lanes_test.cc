#include "lib/vector/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "lib/envs/tetris/tetris_record.h"

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

// What `steps` further actions show.
std::vector<float> Rewards(Lanes& lanes, std::uint64_t seed, int steps) {
  const int env = 0;
  std::vector<float> rewards;
  for (int step = 0; step < steps; ++step) {
    lanes.SetAction(env, ActionOf(seed, step) % lanes.spec().action.count);
    lanes.Play({&env, 1});
    const StepColumns& columns = lanes.columns();
    rewards.insert(rewards.end(),
                   {columns.reward[0], static_cast<float>(columns.terminated[0]),
                    columns.episode_return[0], static_cast<float>(columns.lines_cleared[0])});
    for (std::size_t i = 0; i < columns.obs_bytes; ++i) {
      rewards.push_back(static_cast<float>(columns.obs[i]));
    }
  }
  return rewards;
}

TEST(Lanes, ASavedEnvironmentGoesOnAsTheOriginal) {
  const std::vector<PyEnvConfig> configs = {{.obs = "dict"},
                                            {.obs = "compact", .iid_pieces = true},
                                            {.env = "tetris-placement", .obs = "planes"},
                                            {.env = "cartpole"}};
  for (const PyEnvConfig& config : configs) {
    for (const int before : {1, 2, 57, 300}) {
      Lanes original(config, 1), other(config, 1);
      original.Seed(0, 5);
      Rewards(original, 1, before);
      const std::vector<std::byte> saved = original.Save(0);
      other.Put(0, std::move(*other.Opened(saved)));
      EXPECT_EQ(other.columns().obs, original.columns().obs);
      EXPECT_EQ(other.columns().action_mask, original.columns().action_mask);
      EXPECT_EQ(other.columns().reward, original.columns().reward);
      EXPECT_EQ(other.Save(0), saved);
      EXPECT_EQ(Rewards(other, 2, 400), Rewards(original, 2, 400)) << config.env << before;
    }
  }
}

// What a space promises: no cell beyond the pieces' values, no negative counts; and finite rewards.
void ExpectInItsSpace(Lanes& lanes, const PyEnvConfig& config, std::size_t bit) {
  const StepColumns& columns = lanes.columns();
  EXPECT_GE(columns.lines[0], 0) << bit;
  EXPECT_GE(columns.lines_cleared[0], 0) << bit;
  EXPECT_TRUE(std::isfinite(columns.reward[0])) << bit;
  EXPECT_TRUE(std::isfinite(columns.episode_return[0])) << bit;
  if (config.obs != "dict") return;
  EXPECT_LE(*std::max_element(columns.obs.begin(), columns.obs.end()), std::byte{8}) << bit;
}

// The property: whatever bytes are taken for a state, playing on from them neither aborts nor
// leaves an array (the sanitizers watch), and what is seen stays in its space.
TEST(Lanes, DamagedStatesAreRefusedOrPlayable) {
  for (const PyEnvConfig& config : {PyEnvConfig{.obs = "dict"}, PyEnvConfig{.env = "cartpole"},
                                    PyEnvConfig{.env = "tetris-placement", .obs = "afterstates"}}) {
    Lanes lanes(config, 1);
    lanes.Seed(0, 5);
    Rewards(lanes, 1, 40);
    const std::vector<std::byte> saved = lanes.Save(0);
    EXPECT_FALSE(lanes.Opened({saved.data(), saved.size() - 1}).has_value());
    EXPECT_FALSE(lanes.Opened({}).has_value());
    int refused = 0;
    for (std::size_t bit = 0; bit < saved.size() * 8; ++bit) {
      std::vector<std::byte> damaged = saved;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      std::optional<Lanes::Saved> opened = lanes.Opened(damaged);
      if (!opened.has_value()) {
        refused += 1;
        continue;
      }
      lanes.Put(0, std::move(*opened));
      ExpectInItsSpace(lanes, config, bit);
      const int env = 0;
      for (int step = 0; step < 60; ++step) {
        lanes.SetAction(env, ActionOf(3, step) % lanes.spec().action.count);
        lanes.Play({&env, 1});
      }
      ExpectInItsSpace(lanes, config, bit);
    }
    EXPECT_GT(refused, 60) << config.env;
  }
}

TEST(Lanes, AStateOfAnotherConfigurationIsRefused) {
  Lanes planes({.obs = "planes"}, 1), flat({.obs = "flat"}, 1), short_queue({.queue_size = 3}, 1);
  Lanes shorter({.obs = "flat", .max_steps = 9}, 1), iid({.iid_pieces = true}, 1);
  EXPECT_TRUE(planes.Save(0).empty()) << "there is no state before the first step";
  planes.Seed(0, 1);
  flat.Seed(0, 1);
  EXPECT_TRUE(flat.Save(0).empty());
  Rewards(planes, 1, 5);
  Rewards(flat, 1, 5);
  EXPECT_TRUE(planes.Opened(flat.Save(0)).has_value()) << "colours can be dropped";
  EXPECT_FALSE(flat.Opened(planes.Save(0)).has_value()) << "colours cannot be made up";
  EXPECT_FALSE(short_queue.Opened(flat.Save(0)).has_value());
  EXPECT_FALSE(shorter.Opened(flat.Save(0)).has_value());
  EXPECT_FALSE(iid.Opened(flat.Save(0)).has_value());
}

TEST(Lanes, AStateOfAnotherFieldIsRefused) {
  const PyEnvConfig config = {.env = "tetris-placement", .obs = "compact"};
  PyEnvConfig fewer = config, above = config;
  fewer.rows = 12;
  above.spawn_above = true;
  const std::vector<PyEnvConfig> fields = {config, fewer, above};
  for (std::size_t from = 0; from < fields.size(); ++from) {
    Lanes played(fields[from], 1);
    played.Seed(0, 1);
    Rewards(played, 1, 1);
    for (std::size_t to = 0; to < fields.size(); ++to) {
      const Lanes other(fields[to], 1);
      EXPECT_EQ(other.Opened(played.Save(0)).has_value(), from == to) << from << " to " << to;
    }
  }
}

TEST(Lanes, TheFirstRowOfAnEpisodeHasClearedNoLines) {
  Lanes lanes({.obs = "compact"}, 1);
  lanes.Seed(0, 5);
  Rewards(lanes, 1, 3);
  std::vector<std::byte> saved = lanes.Save(0);
  // Lines of the account, behind the head, the token and the steps.
  constexpr std::size_t kLinesAt = 32 + sizeof(Token) + 4;
  const std::uint32_t lines = 7;
  std::memcpy(saved.data() + kLinesAt, &lines, sizeof lines);
  lanes.Put(0, std::move(*lanes.Opened(saved)));
  EXPECT_EQ(lanes.columns().lines[0], 7);
  Rewards(lanes, 1, 1);
  EXPECT_EQ(lanes.columns().lines[0], 7);
  EXPECT_EQ(lanes.columns().lines_cleared[0], 0) << "those of this step";
  lanes.Restart(0);
  Rewards(lanes, 1, 1);
  EXPECT_EQ(lanes.columns().lines[0], 0);
  EXPECT_EQ(lanes.columns().lines_cleared[0], 0) << "not the last episode's taken back";
}

}  // namespace
}  // namespace tetrion
