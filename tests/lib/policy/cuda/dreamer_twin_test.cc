// DeviceDreamerPolicy against DreamerPolicy: the same rows, tokens and weights give the same states
// and choices, though the tensor library sums in another order.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/host_copy_guard.h"
#include "lib/envs/cuda/device_views.h"
#include "lib/envs/vec_env.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/policy/cuda/device_dreamer_policy.h"
#include "lib/policy/dreamer_policy.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/policy/cuda/device_rows_fixture.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 42;
constexpr std::uint32_t kLanes = 6;
constexpr std::uint32_t kRows = 5;

EnvSpec MaskedVectorEnv() {
  return testing::EnvWithView<4>("vector", 11, true);
}

// Of what acts, far from uniform, so that choices tell states apart.
std::vector<float> Weights(const DreamerShape& shape, std::uint64_t seed) {
  std::vector<float> all(FloatsOf(DreamerLayout(shape)));
  FillDreamerInitial(shape, seed, all);
  all.resize(ActingFloats(shape));
  const std::vector<float> noise = testing::Noise(all.size(), seed);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += 0.2F * noise[i];
  return all;
}

std::span<const std::byte> BlobOf(const std::vector<float>& weights) {
  return std::as_bytes(std::span(weights));
}

DevicePolicyConfig Config(const EnvSpec& env, const DreamerShape& shape, bool greedy = false) {
  return {.network = "dreamer",
          .seed = kSeed,
          .lanes = kLanes,
          .greedy = greedy,
          .expand = DeviceExpandOf(env.obs),
          .dreamer = shape};
}

// Row `number` of a game in which lane 0 begins anew at row 3 and lane 4 is at an end.
HostRow RowOfPlay(const EnvSpec& env, std::uint32_t number) {
  HostRow row = NoisyRow(env, kLanes, 100 + number);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    row.token_ids[lane] = 1000 + lane;
    row.steps[lane] = number;
    row.flags[lane] = 0;
  }
  if (number == 0 || number == 3) row.flags[0] = kIsFirst;
  row.flags[4] = kIsLast | kTerminated;
  return row;
}

struct Choice {
  std::vector<std::int32_t> action;
  std::vector<float> log_prob;
};

Choice OnTheCpu(Policy& policy, const EnvSpec& env, const HostRow& row) {
  std::vector<std::uint32_t> ids(kLanes);
  std::iota(ids.begin(), ids.end(), 0);
  PolicyInput in = row.Input(env);
  in.lane_ids = ids.data();
  Choice choice = {std::vector<std::int32_t>(kLanes), std::vector<float>(kLanes)};
  EXPECT_EQ(policy.Act(in, {choice.action.data(), choice.log_prob.data()}), ActResult::kOk);
  return choice;
}

class DreamerTwinTest : public DeviceRowsFixture {
 protected:
  void Decide(DevicePolicy& policy, const RowsOnDevice& rows) {
    policy.Decide(rows.slots, rows.row.data<std::uint64_t>(), rows.token_ids.data<std::uint64_t>(),
                  rows.steps.data<std::uint32_t>(), *stream);
  }

  // Plays rows by both and compares.
  void ExpectTheSamePlay(const EnvSpec& env, const DreamerShape& shape, bool greedy) {
    ExpectTheSamePlay(env, shape, greedy, Weights(shape, 3));
  }
  void ExpectTheSamePlay(const EnvSpec& env, const DreamerShape& shape, bool greedy,
                         const std::vector<float>& weights) {
    const auto cpu = MakeDreamerPolicy(
        {.shape = shape, .seed = kSeed, .greedy = greedy, .max_lanes = kLanes, .lane_ids = kLanes},
        env);
    DeviceDreamerPolicy on_device(*device, Config(env, shape, greedy), env);
    ASSERT_EQ(cpu->LoadWeights(BlobOf(weights), 7), LoadResult::kLoaded);
    ASSERT_EQ(on_device.LoadWeights(BlobOf(weights), 7, *stream), LoadResult::kLoaded);
    EXPECT_EQ(on_device.WeightsBytes(), cpu->WeightsBytes());
    const RowsOnDevice rows(*device, env, kLanes, 2);
    for (std::uint32_t number = 0; number < kRows; ++number) {
      HostRow row = RowOfPlay(env, number);
      const Choice expected = OnTheCpu(*cpu, env, row);
      Put(row, number, rows);
      Decide(on_device, rows);
      Take(row, number, rows);
      EXPECT_EQ(row.header.policy_version, 7U);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if ((row.flags[lane] & kIsLast) != 0) {
          EXPECT_EQ(row.action[lane], 0);
          continue;
        }
        EXPECT_EQ(row.action[lane], expected.action[lane]) << "row " << number << " lane " << lane;
        EXPECT_NEAR(row.log_prob[lane], expected.log_prob[lane], 2e-4)
            << "row " << number << " lane " << lane;
      }
    }
  }
};

TEST_F(DreamerTwinTest, StatesAndChoicesAgreeOnVectors) {
  for (const EnvSpec& env : {testing::VectorEnv(), MaskedVectorEnv()}) {
    const DreamerShape shape = DreamerShapeOf(env, "nano");
    ExpectTheSamePlay(env, shape, /*greedy=*/false);
    ExpectTheSamePlay(env, shape, /*greedy=*/true);
  }
}

TEST_F(DreamerTwinTest, TheyAgreeUnderOtherSettingsOfTheModel) {
  const EnvSpec env = MaskedVectorEnv();
  DreamerShape shape = DreamerShapeOf(env, "nano");
  shape.layer_norm = true;
  shape.unimix = 0.05;
  shape.actor_unimix = 0.3;
  ExpectTheSamePlay(env, shape, /*greedy=*/false);
}

// Without a uniform share a class or an action may have a chance that no float or double holds.
TEST_F(DreamerTwinTest, TheyAgreeWhereTheModelIsCertain) {
  const EnvSpec env = MaskedVectorEnv();
  DreamerShape shape = DreamerShapeOf(env, "nano");
  shape.unimix = 0;
  shape.actor_unimix = 0;
  std::vector<float> weights = Weights(shape, 3);
  for (const ParameterInfo& piece : DreamerLayout(shape)) {
    if (piece.name == "posterior.out.bias") weights.at(piece.offset) = 200;
    if (piece.name == "actor.out.bias") weights.at(piece.offset + 1) = 1000;
  }
  ExpectTheSamePlay(env, shape, /*greedy=*/false, weights);
}

// The records are any bytes: both sides read them as a game.
TEST_F(DreamerTwinTest, TheyAgreeOnPlanesOfTetris) {
  const EnvSpec env = MakeEnvSpec({.name = "tetris-placement", .view = "planes"});
  ExpectTheSamePlay(env, DreamerShapeOf(env, "nano"), /*greedy=*/false);
}

TEST_F(DreamerTwinTest, AGraphGoesOnWithTheLanesStatesAndCopiesNothing) {
  const EnvSpec env = testing::VectorEnv();
  const DreamerShape shape = DreamerShapeOf(env, "nano");
  const std::vector<float> weights = Weights(shape, 4);
  DeviceDreamerPolicy in_turn(*device, Config(env, shape), env);
  DeviceDreamerPolicy in_a_graph(*device, Config(env, shape), env);
  const RowsOnDevice rows(*device, env, kLanes, 2);
  for (DeviceDreamerPolicy* policy : {&in_turn, &in_a_graph}) {
    ASSERT_EQ(policy->LoadWeights(BlobOf(weights), 1, *stream), LoadResult::kLoaded);
  }
  cuda::Capture capture(*stream);
  Decide(in_a_graph, rows);
  const cuda::Graph graph = capture.End();
  for (std::uint32_t number = 0; number < 3; ++number) {
    HostRow expected = RowOfPlay(env, number), row = expected;
    Put(expected, number, rows);
    Decide(in_turn, rows);
    Take(expected, number, rows);
    const cuda::HostCopyGuard guard;
    stream->Launch(graph);
    EXPECT_TRUE(guard.Violations().empty());
    Take(row, number, rows);
    EXPECT_EQ(row.action, expected.action);
    EXPECT_EQ(row.log_prob, expected.log_prob);
  }
}

TEST_F(DreamerTwinTest, ALaneWhoseStateIsNotFiniteBeginsAgainAndIsCounted) {
  const EnvSpec env = testing::VectorEnv();
  const DreamerShape shape = DreamerShapeOf(env, "nano");
  const std::vector<float> weights = Weights(shape, 5);
  DeviceDreamerPolicy hurt(*device, Config(env, shape), env),
      whole(*device, Config(env, shape), env);
  for (DeviceDreamerPolicy* policy : {&hurt, &whole}) {
    ASSERT_EQ(policy->LoadWeights(BlobOf(weights), 1, *stream), LoadResult::kLoaded);
  }
  const RowsOnDevice rows(*device, env, kLanes, 2);
  HostRow bad = RowOfPlay(env, 0);
  reinterpret_cast<float*>(bad.record.data())[1 * 4] = std::numeric_limits<float>::quiet_NaN();
  Put(bad, 0, rows);
  Decide(hurt, rows);
  Take(bad, 0, rows);
  EXPECT_FLOAT_EQ(bad.log_prob[1], -std::log(2.0F)) << "all legal actions are equally likely";
  EXPECT_TRUE(std::isfinite(bad.log_prob[2]));
  // The other policy sees the next row first: its lanes have no state.
  HostRow next = RowOfPlay(env, 1), fresh = next;
  Put(next, 1, rows);
  Decide(hurt, rows);
  Take(next, 1, rows);
  Decide(whole, rows);
  Take(fresh, 1, rows);
  EXPECT_EQ(next.action[1], fresh.action[1]);
  EXPECT_EQ(next.log_prob[1], fresh.log_prob[1]);
  EXPECT_NE(next.log_prob[2], fresh.log_prob[2]) << "a lane beside it kept its state";
  hurt.EnqueueCheck(*stream);
  stream->Synchronize();
  EXPECT_EQ(hurt.TakeCheck(), 1U);
}

TEST_F(DreamerTwinTest, BlobsOfAnotherSizeAndPicturesAreRefused) {
  const EnvSpec env = testing::VectorEnv();
  const DreamerShape shape = DreamerShapeOf(env, "nano");
  DeviceDreamerPolicy policy(*device, Config(env, shape), env);
  const std::vector<float> other = Weights(DreamerShapeOf(env, "1m"), 1);
  EXPECT_EQ(policy.LoadWeights(BlobOf(other), 2, *stream), LoadResult::kWrongSize);
  EXPECT_EQ(policy.version(), 0U);
  const EnvSpec pictures = testing::EnvWithView<kPictureRows * kPictureColumns>("pixels", 8, false);
  const DevicePolicyConfig config = Config(env, DreamerShapeOf(pictures, "nano"));
  try {
    MakeDevicePolicy(*device, config, pictures);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("encoder of pictures does not run on a device"));
  }
}

}  // namespace
}  // namespace tetrion
