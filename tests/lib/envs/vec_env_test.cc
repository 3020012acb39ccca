#include "lib/envs/vec_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/envs/lane_env.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_rules.h"
#include "lib/envs/views/gym_views.h"
#include "lib/envs/views/views.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

using testing::AllEnvNames;
using testing::Draws;
using testing::RowedEnv;

TEST(RegistryTest, DefaultViewsAndShapes) {
  const EnvSpec cartpole = MakeEnvSpec({.name = "cartpole"});
  EXPECT_EQ(cartpole.obs.view, "vector");
  EXPECT_EQ(cartpole.obs.record_bytes, 16U);
  EXPECT_EQ(cartpole.obs.view_floats, 4);
  EXPECT_EQ(cartpole.action.count, 2);
  EXPECT_FALSE(cartpole.has_lines);
  const EnvSpec tetris = MakeEnvSpec({.name = "tetris", .queue_size = 7});
  EXPECT_EQ(tetris.obs.view, "planes");
  EXPECT_EQ(tetris.obs.view_floats, 469);
  EXPECT_EQ(tetris.action.count, 8);
  EXPECT_FALSE(tetris.action.has_mask);
  EXPECT_TRUE(tetris.has_lines);
  const EnvSpec placement = MakeEnvSpec({.name = "tetris-placement"});
  EXPECT_EQ(placement.obs.view, "afterstates");
  EXPECT_EQ(placement.obs.view_floats, 688);
  EXPECT_EQ(placement.obs.record, "compact");
  EXPECT_EQ(placement.action.count, 40);
  EXPECT_TRUE(placement.action.has_mask);
  EXPECT_EQ(MakeEnvSpec({.name = "tetris-placement", .view = "planes"}).obs.view_floats, 448);
}

// What a bad configuration is told.
std::string Refusal(const EnvConfig& config) {
  try {
    (void)MakeVecEnv(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "accepted";
}

TEST(RegistryTest, UnknownNamesAreAnsweredWithTheKnownOnes) {
  EXPECT_NE(Refusal({.name = "pong"}).find(EnvNames()), std::string::npos);
  EXPECT_NE(Refusal({.name = "tetris", .view = "packed2"}).find("planes"), std::string::npos);
  EXPECT_NE(Refusal({.name = "tetris", .view = "afterstates"}).find("planes"), std::string::npos);
  EXPECT_NE(Refusal({.name = "tetris", .queue_size = 8}).find("0 to 7"), std::string::npos);
  EXPECT_NE(Refusal({.name = "tetris", .queue_size = -1}).find("0 to 7"), std::string::npos);
  EXPECT_NE(Refusal({.name = "cartpole", .lanes = 0}).find("lanes"), std::string::npos);
}

class EveryEnvTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryEnvTest, RowsFollowTheRowContract) {
  RowedEnv rows({.name = GetParam(), .lanes = 3, .seed = 5, .illegal_is_noop = true});
  Draws draws(1);
  std::uint64_t next_token = 100;
  std::vector<std::uint32_t> length(3, 0);
  std::vector<double> sum(3, 0.0);
  std::vector<bool> fresh(3, true);
  std::vector<std::int32_t> episode(3, -1);
  for (int lane = 0; lane < 3; ++lane) rows.env->Reset(lane, {next_token++, 2, 70});
  for (int t = 0; t < 2000; ++t) {
    for (auto& action : rows.actions) action = draws.Below(rows.env->spec().action.count);
    rows.StepAll();
    for (int lane = 0; lane < 3; ++lane) {
      const auto i = static_cast<std::size_t>(lane);
      const std::uint8_t flags = rows.row.flags[lane];
      ASSERT_EQ((flags & kIsFirst) != 0, fresh[i]);
      if (fresh[i]) {
        ASSERT_EQ(rows.row.reward[lane], 0.0F);
        ASSERT_EQ(flags, kIsFirst);
        length[i] = 0;
        sum[i] = 0;
        ++episode[i];
      } else {
        ++length[i];
        sum[i] += rows.row.reward[lane];
      }
      ASSERT_EQ(rows.row.episode_id[lane], episode[i]);
      ASSERT_EQ(rows.row.cont[lane], (flags & kTerminated) != 0 ? 0.0F : 1.0F);
      fresh[i] = (flags & kIsLast) != 0;
      ASSERT_EQ((flags & (kTerminated | kTruncated)) != 0, fresh[i]);
      ASSERT_NE(flags & (kTerminated | kTruncated), kTerminated | kTruncated);
      const EpisodeResult result = rows.env->Episode(lane);
      ASSERT_EQ(result.length_steps, length[i]);
      ASSERT_EQ(result.episode_return, static_cast<float>(sum[i]));
      ASSERT_EQ(result.attempt, 2U);
      ASSERT_EQ(result.token_id, rows.env->token(lane).id);
      if ((flags & kTruncated) != 0) {
        ASSERT_EQ(length[i], 70U);
      }
      if (fresh[i]) rows.env->Reset(lane, {next_token++, 2, 70});
    }
  }
  EXPECT_GT(next_token, 120U);
}

// An episode depends on (seed, token) and its actions only: not on lane, lane count or neighbours.
TEST_P(EveryEnvTest, EpisodeIsTheSameInAnyLane) {
  RowedEnv wide({.name = GetParam(), .lanes = 9, .seed = 8, .illegal_is_noop = true});
  RowedEnv narrow({.name = GetParam(), .lanes = 1, .seed = 8, .illegal_is_noop = true});
  const std::size_t bytes = wide.env->spec().obs.record_bytes;
  for (int lane = 0; lane < 9; ++lane) {
    wide.env->Reset(lane, {static_cast<std::uint64_t>(40 + lane), 0, 60});
  }
  narrow.env->Reset(0, {47, 0, 60});
  Draws draws(3);
  for (int t = 0; t <= 60; ++t) {
    const int action = draws.Below(wide.env->spec().action.count);
    wide.actions[7] = narrow.actions[0] = action;
    const int only[] = {7};
    wide.env->Step(only, wide.actions.data(), wide.row);
    narrow.StepAll();
    ASSERT_EQ(std::memcmp(wide.row.record + 7 * bytes, narrow.row.record, bytes), 0) << t;
    ASSERT_EQ(wide.row.reward[7], narrow.row.reward[0]);
    ASSERT_EQ(wide.row.flags[7], narrow.row.flags[0]);
    if ((narrow.row.flags[0] & kIsLast) != 0) break;
  }
}

// More lanes than are played together, in lists that are neighbours in part, some of which begin.
TEST_P(EveryEnvTest, LanesOfAnyListPlayAsEachOfThemAlone) {
  constexpr int kLanes = 150;
  RowedEnv all({.name = GetParam(), .lanes = kLanes, .seed = 3, .illegal_is_noop = true});
  std::vector<std::unique_ptr<RowedEnv>> alone;
  for (int lane = 0; lane < kLanes; ++lane) {
    alone.push_back(std::make_unique<RowedEnv>(
        EnvConfig{.name = GetParam(), .seed = 3, .illegal_is_noop = true}));
  }
  Draws draws(2);
  std::vector<std::uint64_t> token(kLanes, 0);
  std::vector<bool> needs_token(kLanes, true);
  const std::size_t record_bytes = all.env->spec().obs.record_bytes;
  for (int t = 0; t < 300; ++t) {
    // Two stretches change places, and some lanes are left out.
    const int cut = draws.Below(kLanes);
    const int most_left_out = t % 3 == 0 ? 1 : 20;
    std::vector<int> lanes;
    for (int i = 0; i < kLanes; i += 1 + draws.Below(most_left_out)) {
      lanes.push_back((i + cut) % kLanes);
    }
    for (const int lane : lanes) {
      const auto i = static_cast<std::size_t>(lane);
      if (needs_token[i]) {
        const Token next = {token[i]++ * kLanes + i, 0, 40};
        all.env->Reset(lane, next);
        alone[i]->env->Reset(0, next);
      }
      all.actions[i] = alone[i]->actions[0] = draws.Below(all.env->spec().action.count);
    }
    all.env->Step(lanes, all.actions.data(), all.row);
    for (const int lane : lanes) {
      const auto i = static_cast<std::size_t>(lane);
      alone[i]->StepAll();
      const RowView& row = alone[i]->row;
      ASSERT_EQ(std::memcmp(all.row.record + i * record_bytes, row.record, record_bytes), 0);
      ASSERT_TRUE(row.mask == nullptr || all.row.mask[i] == row.mask[0]);
      ASSERT_EQ(all.row.reward[i], row.reward[0]);
      ASSERT_EQ(all.row.flags[i], row.flags[0]);
      ASSERT_EQ(all.row.cont[i], row.cont[0]);
      ASSERT_EQ(all.row.episode_id[i], row.episode_id[0]);
      const EpisodeResult ours = all.env->Episode(lane), theirs = alone[i]->env->Episode(0);
      ASSERT_EQ(ours.token_id, theirs.token_id);
      ASSERT_EQ(ours.length_steps, theirs.length_steps);
      ASSERT_EQ(ours.lines, theirs.lines);
      ASSERT_EQ(ours.episode_return, theirs.episode_return);
      needs_token[i] = (row.flags[0] & kIsLast) != 0;
    }
  }
}

// The account's numbers stand behind the token in what is saved; an episode that goes on has taken
// fewer actions than the token allows, one that has ended at most as many.
TEST_P(EveryEnvTest, StateWithMoreActionsThanItsTokenAllowsIsNotLoaded) {
  RowedEnv rows({.name = GetParam(), .seed = 8, .illegal_is_noop = true});
  rows.env->Reset(0, {40, 0, 60});
  rows.StepAll();
  const auto with = [&](std::uint32_t steps, std::uint64_t running) {
    std::vector<std::byte> saved = rows.env->Save(0);
    std::memcpy(saved.data() + sizeof(Token), &steps, sizeof steps);
    std::memcpy(saved.data() + sizeof(Token) + 16, &running, sizeof running);
    RowedEnv other({.name = GetParam(), .seed = 8, .illegal_is_noop = true});
    return other.env->Load(0, saved, other.row);
  };
  EXPECT_TRUE(with(59, 1));
  EXPECT_FALSE(with(60, 1)) << "the last action has been taken";
  EXPECT_TRUE(with(60, 0));
  EXPECT_FALSE(with(61, 0));
  EXPECT_FALSE(with(61, 1));
}

TEST(TetrisEnvTest, GameWhosePieceHasNoRoomIsLoadedOnlyWhereItIsOver) {
  RowedEnv rows({.name = "tetris", .seed = 8});
  rows.env->Reset(0, {40, 0, 60});
  rows.StepAll();
  std::vector<std::byte> saved = rows.env->Save(0);
  constexpr std::size_t kGameAt = sizeof(Token) + 24;
  ColourRecord record;
  std::memcpy(&record, saved.data() + kGameAt, sizeof record);
  // The piece's rows, all but the first column.
  for (const int row : {0, 1}) record.compact.row[row] = kTetrisFullRow ^ 1U << kTetrisFieldShift;
  record = UncolouredRecord(record.compact);
  std::memcpy(saved.data() + kGameAt, &record, sizeof record);
  EXPECT_FALSE(rows.env->Load(0, saved, rows.row));
  saved[sizeof(Token) + 16] = std::byte{0};  // it does not go on
  EXPECT_TRUE(rows.env->Load(0, saved, rows.row));
}

TEST_P(EveryEnvTest, LaneGivenASeedPlaysWhatAnEnvironmentOfThatSeedPlays) {
  RowedEnv mixed({.name = GetParam(), .lanes = 3, .seed = 8, .illegal_is_noop = true});
  RowedEnv other({.name = GetParam(), .lanes = 1, .seed = 99, .illegal_is_noop = true});
  RowedEnv own({.name = GetParam(), .lanes = 1, .seed = 8, .illegal_is_noop = true});
  mixed.env->Reset(1, {40, 0, 60});
  mixed.env->Seed(1, 99);  // an episode that was begun is forgotten
  EXPECT_TRUE(mixed.env->Save(1).empty());
  for (const int lane : {1, 2}) mixed.env->Reset(lane, {41, 0, 60});
  for (RowedEnv* one : {&other, &own}) one->env->Reset(0, {41, 0, 60});
  const std::size_t bytes = mixed.env->spec().obs.record_bytes;
  const std::vector<int> active = {1, 2};
  Draws draws(4);
  bool differ = false;
  for (int t = 0; t < 20; ++t) {
    mixed.env->Step(active, mixed.actions.data(), mixed.row);
    for (const int lane : active) {
      RowedEnv& one = lane == 1 ? other : own;
      one.StepAll();
      ASSERT_EQ(std::memcmp(mixed.row.record + lane * bytes, one.row.record, bytes), 0) << t;
      ASSERT_EQ(mixed.row.flags[lane], one.row.flags[0]);
      if ((one.row.flags[0] & kIsLast) != 0) one.env->Reset(0, {42U + t, 0, 60});
      if ((one.row.flags[0] & kIsLast) != 0) mixed.env->Reset(lane, {42U + t, 0, 60});
      mixed.actions[lane] = one.actions[0] = draws.Below(mixed.env->spec().action.count);
    }
    differ = differ || std::memcmp(mixed.row.record + bytes, mixed.row.record + 2 * bytes, bytes);
  }
  EXPECT_TRUE(differ);
}

TEST_P(EveryEnvTest, ResetMayCutARunningEpisode) {
  RowedEnv rows({.name = GetParam()});
  rows.env->Reset(0, {1, 0, 50});
  rows.StepAll();
  rows.actions[0] = 1;
  rows.env->Reset(0, {2, 0, 50});
  rows.StepAll();
  EXPECT_EQ(rows.row.flags[0], kIsFirst);
  EXPECT_EQ(rows.row.episode_id[0], 1);
  EXPECT_EQ(rows.env->Episode(0).length_steps, 0U);
}

using EveryEnvDeathTest = EveryEnvTest;

TEST_P(EveryEnvDeathTest, ActionOutOfRangeIsABug) {
  RowedEnv rows({.name = GetParam()});
  rows.env->Reset(0, {1, 0, 50});
  rows.StepAll();
  rows.actions[0] = rows.env->spec().action.count;
  EXPECT_DEATH(rows.StepAll(), "action out of range");
  rows.actions[0] = -1;
  EXPECT_DEATH(rows.StepAll(), "action out of range");
}

TEST_P(EveryEnvDeathTest, SteppingPastTheLastRowIsABug) {
  RowedEnv rows({.name = GetParam()});
  EXPECT_DEATH(rows.StepAll(), "without a token");
  rows.env->Reset(0, {1, 0, 1});
  rows.StepAll();
  rows.StepAll();
  EXPECT_EQ(rows.row.flags[0] & kIsLast, kIsLast);
  EXPECT_DEATH(rows.StepAll(), "past is_last");
}

TEST_P(EveryEnvDeathTest, UnknownLaneIsABug) {
  RowedEnv rows({.name = GetParam()});
  EXPECT_DEATH(rows.env->Reset(1, {1, 0, 50}), "no such lane");
  EXPECT_DEATH(rows.env->Reset(-1, {1, 0, 50}), "no such lane");
}

INSTANTIATE_TEST_SUITE_P(All, EveryEnvTest, ::testing::ValuesIn(AllEnvNames()));
INSTANTIATE_TEST_SUITE_P(All, EveryEnvDeathTest, ::testing::ValuesIn(AllEnvNames()));

// Games of one step, and what they are without one of their functions.
struct OneStep {
  struct Record {};
  struct Saved {};
  explicit OneStep(const EnvConfig&) {}
  void Reset(int, std::uint64_t, const Token&) {}
  Record record(int) const { return {}; }
  std::uint64_t Mask(int) const { return 0; }
  Saved Save(int) const { return {}; }
  bool Load(int, std::uint64_t, const Token&, const Saved&, bool) { return true; }
  LaneOutcome Step(int, int) { return {}; }
};
struct WithoutStep : OneStep {
  using OneStep::OneStep;
  void Step() {}
};
struct WithoutLoad : OneStep {
  using OneStep::OneStep;
  void Load() {}
};
static_assert(LaneGames<OneStep>);
static_assert(!LaneGames<WithoutStep> && KeepsGames<WithoutStep>);
static_assert(!KeepsGames<WithoutLoad> && StepsAlone<WithoutLoad>);

TEST(PlacementEnvTest, MaskComesWithEveryObservationAndIllegalChoicesCost) {
  for (const bool noop : {false, true}) {
    RowedEnv rows({.name = "tetris-placement", .illegal_is_noop = noop});
    rows.env->Reset(0, {3, 0, 100});
    rows.StepAll();
    ASSERT_EQ(rows.row.mask[0], PlacementMask(rows.RecordAt<TetrisRecord>(0)));
    rows.actions[0] = std::countr_one(rows.row.mask[0]);
    rows.StepAll();
    EXPECT_EQ(rows.row.reward[0], kIllegalReward);
    EXPECT_EQ(rows.row.flags[0], noop ? 0 : kIsLast | kTerminated);
    EXPECT_EQ(rows.row.cont[0], noop ? 1.0F : 0.0F);
  }
}

TEST(TetrisEnvTest, EpisodeCountsLines) {
  RowedEnv rows({.name = "tetris-placement", .seed = 4});
  rows.env->Reset(0, {5, 0, 400});
  rows.StepAll();
  std::vector<float> view(static_cast<std::size_t>(rows.env->spec().obs.view_floats));
  while ((rows.row.flags[0] & kIsLast) == 0) {
    rows.env->spec().obs.expand(rows.row.record, 1, 4, view.data());
    float best = 1e9F;
    for (int action = 0; action < 40; ++action) {
      if ((rows.row.mask[0] >> action & 1) == 0) continue;
      const float* row = &view[static_cast<std::size_t>(16 * action)];
      const float score = 8 * row[11] + row[10] + row[12] + row[14] + 100 * row[15];
      if (score < best) rows.actions[0] = action;
      best = std::min(best, score);
    }
    rows.StepAll();
  }
  EXPECT_EQ(rows.env->Episode(0).lines, rows.RecordAt<TetrisRecord>(0).lines);
  EXPECT_GT(rows.env->Episode(0).lines, 30U);
}

TEST(CartPoleTest, StartsWithinFiveHundredthsAndDiffersByToken) {
  RowedEnv rows({.name = "cartpole", .lanes = 200, .seed = 1});
  for (int lane = 0; lane < 200; ++lane)
    rows.env->Reset(lane, {static_cast<std::uint64_t>(lane), 0, 500});
  rows.StepAll();
  float lowest = 1, highest = -1;
  for (int lane = 0; lane < 200; ++lane) {
    const auto& record = rows.RecordAt<CartPoleRecord>(lane);
    for (const float value : {record.x, record.x_dot, record.theta, record.theta_dot}) {
      ASSERT_LE(std::abs(value), 0.05F);
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
  }
  EXPECT_LT(lowest, -0.045F);
  EXPECT_GT(highest, 0.045F);
}

TEST(CartPoleTest, PushingOneWayFallsAndPaysOneForEveryStep) {
  RowedEnv rows({.name = "cartpole"});
  rows.env->Reset(0, {1, 0, 500});
  rows.StepAll();
  rows.actions[0] = 1;
  while ((rows.row.flags[0] & kIsLast) == 0) {
    rows.StepAll();
    EXPECT_EQ(rows.row.reward[0], 1.0F);
  }
  EXPECT_EQ(rows.row.flags[0], kIsLast | kTerminated);
  const EpisodeResult result = rows.env->Episode(0);
  EXPECT_GE(result.length_steps, 8U);
  EXPECT_LE(result.length_steps, 11U);
  EXPECT_EQ(result.episode_return, static_cast<float>(result.length_steps));
  EXPECT_GT(std::abs(rows.RecordAt<CartPoleRecord>(0).theta), 0.209F);
}

}  // namespace
}  // namespace tetrion
