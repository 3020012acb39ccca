// DeviceMlpPolicy against NetworkPolicy: the same records, masks, tokens and weights give the same
// choice, though the kernels sum in another order.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/envs/cuda/device_views.h"
#include "lib/envs/vec_env.h"
#include "lib/nn/network.h"
#include "lib/policy/cuda/device_mlp_policy.h"
#include "lib/policy/network_policy.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/policy/cuda/device_rows_fixture.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kSeed = 42;
constexpr std::uint32_t kLanes = 21;

struct Twins {
  Twins(const cuda::Device& device, const EnvSpec& env)
      : cpu(MakeNetworkPolicy({.network = "mlp", .seed = kSeed, .max_lanes = kLanes}, env)),
        on_device(
            device,
            {.network = "mlp", .seed = kSeed, .lanes = kLanes, .expand = DeviceExpandOf(env.obs)},
            env) {}
  std::unique_ptr<Policy> cpu;
  DeviceMlpPolicy on_device;
};

class NetworkTwinTest : public DeviceRowsFixture {
 protected:
  // Decides the row by both and compares: equal actions but where a draw falls between two.
  void ExpectSameChoice(Twins& twins, const EnvSpec& env, HostRow row) {
    std::vector<std::int32_t> action(kLanes);
    std::vector<float> log_prob(kLanes);
    ASSERT_EQ(twins.cpu->Act(row.Input(env), {action.data(), log_prob.data()}), ActResult::kOk);
    const RowsOnDevice rows(*device, env, kLanes, 2);
    Put(row, 3, rows);
    twins.on_device.Decide(rows.slots, rows.row.data<std::uint64_t>(),
                           rows.token_ids.data<std::uint64_t>(), rows.steps.data<std::uint32_t>(),
                           *stream);
    Take(row, 3, rows);
    EXPECT_EQ(row.header.policy_version, twins.cpu->version());
    int acting = 0, different = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((row.flags[lane] & kIsLast) != 0) {
        EXPECT_EQ(row.action[lane], 0);
        EXPECT_EQ(row.log_prob[lane], 0.0F);
        continue;
      }
      ++acting;
      if (row.action[lane] != action[lane]) {
        ++different;
      } else {
        EXPECT_NEAR(row.log_prob[lane], log_prob[lane], 2e-5) << lane;
      }
    }
    EXPECT_GT(acting, 10);
    EXPECT_LE(different, 1) << "more draws than that do not fall on a boundary";
  }

  void LoadBoth(Twins& twins, const EnvSpec& env, std::uint32_t version) {
    const auto network = MakeNetwork({.name = "mlp", .seed = 7}, env);
    const std::vector<float> noise = testing::Noise(network->parameters().size(), version);
    for (std::size_t i = 0; i < noise.size(); ++i) network->parameters()[i] += 0.1F * noise[i];
    const auto blob = std::as_bytes(std::span<const float>(network->parameters()));
    ASSERT_EQ(twins.cpu->LoadWeights(blob, version), LoadResult::kLoaded);
    ASSERT_EQ(twins.on_device.LoadWeights(blob, version, *stream), LoadResult::kLoaded);
    EXPECT_EQ(twins.on_device.WeightsBytes(), twins.cpu->WeightsBytes());
  }
};

TEST_F(NetworkTwinTest, ChoicesAgreeOnVectors) {
  const EnvSpec env = testing::VectorEnv();
  Twins twins(*device, env);
  ExpectSameChoice(twins, env, NoisyRow(env, kLanes, 1));  // initial weights
  for (std::uint32_t version = 1; version <= 3; ++version) {
    LoadBoth(twins, env, version);
    ExpectSameChoice(twins, env, NoisyRow(env, kLanes, version));
  }
}

// The records are any bytes: both sides read them as a game.
TEST_F(NetworkTwinTest, ChoicesAgreeOnGamesOfTetris) {
  for (const char* name : {"tetris", "tetris-placement"}) {
    const EnvSpec env = MakeEnvSpec({.name = name, .view = "planes"});
    Twins twins(*device, env);
    ExpectSameChoice(twins, env, NoisyRow(env, kLanes, 1));
    LoadBoth(twins, env, 5);
    ExpectSameChoice(twins, env, NoisyRow(env, kLanes, 2));
  }
}

}  // namespace
}  // namespace tetrion
