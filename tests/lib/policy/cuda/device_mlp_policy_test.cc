#include "lib/policy/cuda/device_mlp_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/cuda/host_copy_guard.h"
#include "lib/envs/cuda/device_views.h"
#include "lib/nn/categorical.h"
#include "lib/nn/mlp.h"
#include "lib/policy/uniform_choice.h"
#include "tests/lib/nn/cuda/mlp_reference.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/policy/cuda/device_rows_fixture.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kSeed = 42;

// An environment with masks whose record is its view.
EnvSpec MaskedVectorEnv() {
  return testing::EnvWithView<4>("vector", 11, true);
}

DevicePolicyConfig Config(std::uint32_t lanes, bool greedy = false) {
  return {.network = "mlp",
          .seed = kSeed,
          .lanes = static_cast<int>(lanes),
          .greedy = greedy,
          .expand = DeviceExpandOf(testing::VectorEnv().obs)};
}

std::vector<float> Parameters(const EnvSpec& env, std::uint64_t seed) {
  std::vector<float> values = testing::Noise(FloatsOf(MlpLayout(env)), seed);
  for (float& value : values) value *= 0.4F;
  return values;
}

std::span<const std::byte> Blob(const std::vector<float>& parameters) {
  return std::as_bytes(std::span(parameters));
}

class DeviceMlpPolicyTest : public DeviceRowsFixture {
 protected:
  void Decide(DevicePolicy& policy, const RowsOnDevice& rows) {
    policy.Decide(rows.slots, rows.row.data<std::uint64_t>(), rows.token_ids.data<std::uint64_t>(),
                  rows.steps.data<std::uint32_t>(), *stream);
  }
};

// The masked logits of a lane by the network's formula.
std::vector<float> LogitsOf(const HostRow& row, std::size_t lane, const EnvSpec& env,
                            const std::vector<float>& parameters) {
  const auto floats = static_cast<std::size_t>(env.obs.view_floats);
  const auto* view = reinterpret_cast<const float*>(row.record.data()) + lane * floats;
  const auto exact = testing::MlpReference(env, parameters).Logits({view, floats});
  std::vector<float> logits(exact.begin(), exact.end());
  for (std::size_t a = 0; env.action.has_mask && a < logits.size(); ++a) {
    if ((row.mask[lane] >> a & 1) == 0) logits[a] = kMaskedLogit;
  }
  return logits;
}

// What a lane took is what its draw means by the formula's logits, unless the draw is nearly on the
// boundary between two actions; says how many lanes that were.
int ExpectDecision(const HostRow& row, const EnvSpec& env, const std::vector<float>& parameters) {
  int on_boundary = 0;
  for (std::size_t lane = 0; lane < row.flags.size(); ++lane) {
    if ((row.flags[lane] & kIsLast) != 0) {
      EXPECT_EQ(row.action[lane], 0) << lane;
      EXPECT_EQ(row.log_prob[lane], 0.0F) << lane;
      continue;
    }
    const std::vector<float> logits = LogitsOf(row, lane, env, parameters);
    const float normaliser = LogNormaliser(logits, env.action.count);
    const double uniform = UnitDraw(
        PhiloxDraw(kSeed, row.token_ids[lane], row.steps[lane], PhiloxPurpose::kActions).word[0]);
    const auto drawn = [&](double at) {
      return SampleCategorical(logits, env.action.count, normaliser, std::clamp(at, 0.0, 1.0));
    };
    const auto action = static_cast<std::size_t>(row.action[lane]);
    if (drawn(uniform - 1e-5) == drawn(uniform + 1e-5)) {
      EXPECT_EQ(row.action[lane], drawn(uniform)) << lane;
    } else {
      ++on_boundary;
    }
    EXPECT_GT(logits[action], kMaskedLogit / 2) << "lane " << lane << " took an illegal action";
    EXPECT_NEAR(row.log_prob[lane], logits[action] - normaliser, 1e-5) << lane;
  }
  return on_boundary;
}

TEST_F(DeviceMlpPolicyTest, DrawsFromTheSoftmaxOfTheLegalActions) {
  for (const EnvSpec& env : {testing::VectorEnv(), MaskedVectorEnv()}) {
    const std::vector<float> parameters = Parameters(env, 3);
    for (const std::uint32_t lanes : {1U, 130U}) {
      DeviceMlpPolicy policy(*device, Config(lanes), env);
      EXPECT_EQ(policy.WeightsBytes(), Blob(parameters).size());
      ASSERT_EQ(policy.LoadWeights(Blob(parameters), 7, *stream), LoadResult::kLoaded);
      const RowsOnDevice rows(*device, env, lanes, 3);
      for (const std::uint64_t number : {0U, 5U}) {
        HostRow row = NoisyRow(env, lanes, number);
        Put(row, number, rows);
        Decide(policy, rows);
        Take(row, number, rows);
        EXPECT_EQ(row.header.policy_version, 7U);
        EXPECT_LE(ExpectDecision(row, env, parameters), 1);
      }
    }
  }
}

TEST_F(DeviceMlpPolicyTest, GreedyTakesTheMostProbableLegalAction) {
  const EnvSpec env = MaskedVectorEnv();
  const std::vector<float> parameters = Parameters(env, 4);
  DeviceMlpPolicy policy(*device, Config(20, /*greedy=*/true), env);
  ASSERT_EQ(policy.LoadWeights(Blob(parameters), 1, *stream), LoadResult::kLoaded);
  const RowsOnDevice rows(*device, env, 20, 1);
  HostRow row = NoisyRow(env, 20, 8);
  Put(row, 0, rows);
  Decide(policy, rows);
  Take(row, 0, rows);
  for (std::size_t lane = 0; lane < 20; ++lane) {
    if ((row.flags[lane] & kIsLast) != 0) continue;
    EXPECT_EQ(row.action[lane], MostProbable(LogitsOf(row, lane, env, parameters), 11)) << lane;
  }
}

// Seven loads, a row behind each, all enqueued before the stream is waited for.
TEST_F(DeviceMlpPolicyTest, RowsAreDecidedByTheWeightsThatWereLoadedBeforeThem) {
  const EnvSpec env = MaskedVectorEnv();
  DeviceMlpPolicy policy(*device, Config(6), env);
  const RowsOnDevice rows(*device, env, 6, 8);
  HostRow row = NoisyRow(env, 6, 8);
  for (std::uint32_t version = 1; version <= 7; ++version) {
    Put(row, version, rows);
    ASSERT_EQ(policy.LoadWeights(Blob(Parameters(env, version)), version, *stream),
              LoadResult::kLoaded);
    EXPECT_EQ(policy.version(), version);
    Decide(policy, rows);
  }
  for (std::uint32_t version = 1; version <= 7; ++version) {
    Take(row, version, rows);
    EXPECT_EQ(row.header.policy_version, version);
    EXPECT_LE(ExpectDecision(row, env, Parameters(env, version)), 1);
  }
}

TEST_F(DeviceMlpPolicyTest, AGraphDecidesByTheWeightsOfItsLaunchAndCopiesNothing) {
  const EnvSpec env = MaskedVectorEnv();
  DeviceMlpPolicy policy(*device, Config(6), env);
  const RowsOnDevice rows(*device, env, 6, 2);
  cuda::Capture capture(*stream);
  Decide(policy, rows);
  const cuda::Graph graph = capture.End();
  for (std::uint32_t version = 1; version <= 3; ++version) {
    HostRow row = NoisyRow(env, 6, version);
    Put(row, version, rows);
    const std::vector<float> parameters = Parameters(env, version);
    ASSERT_EQ(policy.LoadWeights(Blob(parameters), version, *stream), LoadResult::kLoaded);
    const cuda::HostCopyGuard guard;
    stream->Launch(graph);
    EXPECT_TRUE(guard.Violations().empty());
    Take(row, version, rows);
    EXPECT_EQ(row.header.policy_version, version);
    EXPECT_LE(ExpectDecision(row, env, parameters), 1);
  }
}

TEST_F(DeviceMlpPolicyTest, BadBlobsAreRefusedAndTheOldWeightsStay) {
  const EnvSpec env = MaskedVectorEnv();
  DeviceMlpPolicy policy(*device, Config(6), env);
  std::vector<float> parameters = Parameters(env, 3);
  ASSERT_EQ(policy.LoadWeights(Blob(parameters), 3, *stream), LoadResult::kLoaded);
  EXPECT_EQ(policy.LoadWeights(Blob(parameters).first(8), 4, *stream), LoadResult::kWrongSize);
  std::vector<float> bad = parameters;
  bad.back() = INFINITY;
  EXPECT_EQ(policy.LoadWeights(Blob(bad), 4, *stream), LoadResult::kNotFinite);
  EXPECT_EQ(policy.version(), 3U);
  const RowsOnDevice rows(*device, env, 6, 1);
  HostRow row = NoisyRow(env, 6, 1);
  Put(row, 0, rows);
  Decide(policy, rows);
  Take(row, 0, rows);
  EXPECT_EQ(row.header.policy_version, 3U);
  EXPECT_LE(ExpectDecision(row, env, parameters), 1);
}

TEST_F(DeviceMlpPolicyTest, NotFiniteLogitsMeanALegalActionAndTheirRowsAreCounted) {
  const EnvSpec env = MaskedVectorEnv();
  DeviceMlpPolicy policy(*device, Config(6), env);
  const RowsOnDevice rows(*device, env, 6, 4);
  EXPECT_FALSE(policy.TakeCheck().has_value()) << "no copy was enqueued";
  for (std::uint64_t number = 0; number < 3; ++number) {
    HostRow row = NoisyRow(env, 6, number);
    auto* view = reinterpret_cast<float*>(row.record.data());
    if (number > 0) view[1 * 4] = view[2 * 4 + 3] = std::nanf("");
    view[4 * 4] = INFINITY;  // lane 4 is last: it does not act
    Put(row, number, rows);
    Decide(policy, rows);
    Take(row, number, rows);
    for (const std::size_t lane : {1U, 2U}) {
      if (number == 0) continue;
      const std::uint64_t legal = row.mask[lane] & MaskOfAll(11);
      EXPECT_NE(legal >> row.action[lane] & 1, 0U);
      EXPECT_FLOAT_EQ(row.log_prob[lane], -std::log(static_cast<float>(BitsSet(legal))));
    }
    EXPECT_EQ(row.action[4], 0);
    EXPECT_TRUE(std::isfinite(row.log_prob[0]));
  }
  const cuda::HostCopyGuard guard;
  policy.EnqueueCheck(*stream);
  policy.EnqueueCheck(*stream);
  EXPECT_EQ(guard.Seen().waits, 0U);
  EXPECT_EQ(guard.Seen()
                .Of(cuda::CopyDirection::kDeviceToHost, cuda::MemoryKind::kPinned,
                    cuda::CopyPurpose::kAccount)
                .copies,
            1U);
  stream->Synchronize();
  EXPECT_EQ(policy.TakeCheck(), 2U);
  EXPECT_FALSE(policy.TakeCheck().has_value()) << "each copy is taken once";
}

}  // namespace
}  // namespace tetrion
