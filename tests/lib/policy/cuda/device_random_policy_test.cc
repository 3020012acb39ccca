#include "lib/policy/cuda/device_random_policy.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "lib/policy/random_policy.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/policy/cuda/device_rows_fixture.h"

namespace tetrion {
namespace {

class DeviceRandomPolicyTest : public DeviceRowsFixture {
 protected:
  static DevicePolicyConfig Config(std::uint32_t lanes, std::uint64_t seed = 42) {
    return {.network = "random", .seed = seed, .lanes = static_cast<int>(lanes)};
  }
  void Decide(DevicePolicy& policy, const RowsOnDevice& rows) {
    policy.Decide(rows.slots, rows.row.data<std::uint64_t>(), rows.token_ids.data<std::uint64_t>(),
                  rows.steps.data<std::uint32_t>(), *stream);
  }
};

// The CPU's choice; log-probabilities may differ in their last bits on a device.
void ExpectChoiceOfRandomPolicy(const HostRow& row, const EnvSpec& env, std::uint64_t seed) {
  std::vector<std::int32_t> action(row.action.size());
  std::vector<float> log_prob(row.action.size());
  RandomPolicy policy(seed, env.action);
  ASSERT_EQ(policy.Act(row.Input(env), {action.data(), log_prob.data()}), ActResult::kOk);
  EXPECT_EQ(row.action, action);
  for (std::size_t lane = 0; lane < action.size(); ++lane) {
    EXPECT_FLOAT_EQ(row.log_prob[lane], log_prob[lane]) << lane;
  }
}

TEST_F(DeviceRandomPolicyTest, DrawsAsRandomPolicyDoes) {
  for (const EnvSpec& env : {testing::VectorEnv(), testing::MaskedPlanesEnv()}) {
    for (const std::uint32_t lanes : {1U, 127U, 128U, 129U, 300U}) {
      DeviceRandomPolicy policy(*device, Config(lanes), env);
      const RowsOnDevice rows(*device, env, lanes, 3);
      for (const std::uint64_t number : {0U, 2U, 7U}) {
        HostRow row = NoisyRow(env, lanes, number);
        Put(row, number, rows);
        Decide(policy, rows);
        Take(row, number, rows);
        ExpectChoiceOfRandomPolicy(row, env, 42);
      }
    }
  }
}

TEST_F(DeviceRandomPolicyTest, NoActionIsTakenWhereTheEpisodeIsLastOrNothingIsLegal) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  DeviceRandomPolicy policy(*device, Config(4), env);
  const RowsOnDevice rows(*device, env, 4, 1);
  HostRow row = NoisyRow(env, 4, 1);
  row.flags = {kIsLast | kTerminated, 0, kIsLast | kTruncated, 0};
  row.mask[1] = std::uint64_t{1} << 55;  // no action of 40
  row.mask[3] = std::uint64_t{1} << 39;
  Put(row, 0, rows);
  Decide(policy, rows);
  Take(row, 0, rows);
  EXPECT_EQ(row.action, (std::vector<std::int32_t>{0, 0, 0, 39}));
  EXPECT_EQ(row.log_prob, (std::vector<float>{0, 0, 0, 0}));
}

TEST_F(DeviceRandomPolicyTest, RowsCarryTheVersionThatWasLoadedBeforeThem) {
  const EnvSpec env = testing::VectorEnv();
  DeviceRandomPolicy policy(*device, Config(2), env);
  EXPECT_EQ(policy.WeightsBytes(), 0U);
  const RowsOnDevice rows(*device, env, 2, 4);
  HostRow row = NoisyRow(env, 2, 1);
  for (std::uint64_t number = 0; number < 4; ++number) {
    Put(row, number, rows);
    if (number > 0) {
      const auto version = static_cast<std::uint32_t>(10 + number);
      EXPECT_EQ(policy.LoadWeights({}, version, *stream), LoadResult::kLoaded);
      EXPECT_EQ(policy.version(), version);
    }
    Decide(policy, rows);
  }
  for (std::uint64_t number = 0; number < 4; ++number) {
    Take(row, number, rows);
    EXPECT_EQ(row.header.policy_version, number == 0 ? 0U : 10 + number);
  }
}

TEST_F(DeviceRandomPolicyTest, AGraphDecidesTheRowThatDeviceMemoryNames) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  DeviceRandomPolicy policy(*device, Config(5), env);
  const RowsOnDevice rows(*device, env, 5, 2);
  cuda::Capture capture(*stream);
  Decide(policy, rows);
  const cuda::Graph graph = capture.End();
  for (std::uint64_t number = 5; number < 8; ++number) {
    HostRow row = NoisyRow(env, 5, number);
    Put(row, number, rows);
    ASSERT_EQ(policy.LoadWeights({}, static_cast<std::uint32_t>(number), *stream),
              LoadResult::kLoaded);
    const cuda::HostCopyGuard guard;
    stream->Launch(graph);
    EXPECT_TRUE(guard.Violations().empty());
    Take(row, number, rows);
    EXPECT_EQ(row.header.policy_version, number);
    ExpectChoiceOfRandomPolicy(row, env, 42);
  }
}

TEST_F(DeviceRandomPolicyTest, SlotsOfAnotherShapeAreABug) {
  const EnvSpec env = testing::VectorEnv();
  DeviceRandomPolicy policy(*device, Config(2), env);
  const RowsOnDevice rows(*device, env, 3, 1);
  EXPECT_DEATH(Decide(policy, rows), "that the policy was made for");
}

}  // namespace
}  // namespace tetrion
