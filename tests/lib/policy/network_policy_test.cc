#include "lib/policy/network_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "lib/nn/categorical.h"
#include "lib/nn/network.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

constexpr int kLanes = 24;

// One Act of n lanes of the afterstates environment.
struct Call {
  explicit Call(int lanes, std::uint64_t seed = 1)
      : n(lanes),
        view(testing::Noise(static_cast<std::size_t>(lanes) * testing::kAfterstatesFloats, seed)) {
    for (int lane = 0; lane < n; ++lane) {
      mask.push_back(std::uint64_t{0xF0F0F0F0F} << (lane % 4));
      token.push_back(1000 + static_cast<std::uint64_t>(lane));
      step.push_back(static_cast<std::uint32_t>(lane % 3));
    }
    flags.assign(static_cast<std::size_t>(n), 0);
    action.assign(static_cast<std::size_t>(n), -7);
    log_prob.assign(static_cast<std::size_t>(n), 7.0F);
    value.assign(static_cast<std::size_t>(n), 7.0F);
  }
  // Acts for lanes [from, from + count).
  ActResult Act(Policy& policy, int from, int count) {
    return policy.Act(
        {.n = count,
         .records = reinterpret_cast<const std::byte*>(
             view.data() + static_cast<std::ptrdiff_t>(from) * testing::kAfterstatesFloats),
         .masks = mask.data() + from,
         .flags = flags.data() + from,
         .token_ids = token.data() + from,
         .steps = step.data() + from},
        {action.data() + from, log_prob.data() + from, value.data() + from});
  }

  int n;
  std::vector<float> view;
  std::vector<std::uint64_t> mask, token;
  std::vector<std::uint32_t> step;
  std::vector<std::uint8_t> flags;
  std::vector<std::int32_t> action;
  std::vector<float> log_prob, value;
};

std::unique_ptr<Policy> Make(bool greedy = false, std::uint64_t seed = 5) {
  return MakeNetworkPolicy({.seed = seed, .greedy = greedy, .max_lanes = kLanes},
                           testing::AfterstatesEnv());
}

std::unique_ptr<Network> TrainersNetwork(std::uint64_t seed) {
  auto network = MakeNetwork({.seed = seed, .max_states = kLanes, .training = true},
                             testing::AfterstatesEnv());
  const std::vector<float> noise = testing::Noise(network->parameters().size(), 3);
  for (std::size_t i = 0; i < noise.size(); ++i) network->parameters()[i] += 0.1F * noise[i];
  return network;
}

std::span<const std::byte> BlobOf(const Network& network) {
  return std::as_bytes(network.parameters());
}

TEST(NetworkPolicyTest, LogProbabilitiesEqualTheTrainersNetworks) {
  const auto network = TrainersNetwork(9);
  const auto policy = Make();
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 4), LoadResult::kLoaded);
  EXPECT_EQ(policy->version(), 4u);
  EXPECT_EQ(policy->WeightsBytes(), BlobOf(*network).size());
  Call call(kLanes);
  ASSERT_EQ(call.Act(*policy, 0, kLanes), ActResult::kOk);
  std::vector<float> logits(kLanes * 40), value(kLanes);
  network->Forward(call.view.data(), call.mask.data(), kLanes, logits.data(), value.data());
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const float* row = logits.data() + lane * 40;
    EXPECT_NE(call.mask[lane] >> call.action[lane] & 1, 0u);
    EXPECT_NEAR(call.log_prob[lane], row[call.action[lane]] - LogNormaliser(row, 40), 1e-5);
    EXPECT_NEAR(call.value[lane], value[lane], 1e-5);
  }
}

TEST(NetworkPolicyTest, ChoiceDependsOnTokenAndStepButNotOnTheOtherLanes) {
  const auto network = TrainersNetwork(9);
  const auto policy = Make();
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 1), LoadResult::kLoaded);
  Call together(kLanes), alone(kLanes), later(kLanes);
  ASSERT_EQ(together.Act(*policy, 0, kLanes), ActResult::kOk);
  for (int lane = kLanes - 1; lane >= 0; --lane)
    ASSERT_EQ(alone.Act(*policy, lane, 1), ActResult::kOk);
  EXPECT_EQ(together.action, alone.action);
  EXPECT_EQ(together.log_prob, alone.log_prob);
  for (std::uint32_t& step : later.step) step += 1;
  ASSERT_EQ(later.Act(*policy, 0, kLanes), ActResult::kOk);
  EXPECT_NE(together.action, later.action);
}

TEST(NetworkPolicyTest, DrawsFollowTheReportedProbabilities) {
  const auto network = TrainersNetwork(9);
  const auto policy = Make();
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 1), LoadResult::kLoaded);
  Call call(1);
  std::vector<int> counts(40);
  std::vector<double> probability(40);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    call.token[0] = static_cast<std::uint64_t>(i);
    ASSERT_EQ(call.Act(*policy, 0, 1), ActResult::kOk);
    ++counts[static_cast<std::size_t>(call.action[0])];
    probability[static_cast<std::size_t>(call.action[0])] = std::exp(call.log_prob[0]);
  }
  double chi_square = 0;
  int cells = 0;
  for (std::size_t a = 0; a < 40; ++a) {
    if (counts[a] == 0) continue;
    const double expected = kDraws * probability[a];
    chi_square += (counts[a] - expected) * (counts[a] - expected) / expected;
    ++cells;
  }
  EXPECT_EQ(cells, 20);
  EXPECT_LT(chi_square, 43.8);  // 19 degrees of freedom, p = 0.001; the draws are fixed by the seed
}

TEST(NetworkPolicyTest, GreedyTakesTheMostProbableLegalAction) {
  const auto network = TrainersNetwork(9);
  const auto policy = Make(/*greedy=*/true);
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 1), LoadResult::kLoaded);
  Call call(kLanes);
  ASSERT_EQ(call.Act(*policy, 0, kLanes), ActResult::kOk);
  std::vector<float> logits(kLanes * 40);
  network->Infer(call.view.data(), call.mask.data(), kLanes, logits.data(), nullptr);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(call.action[lane], MostProbable(logits.data() + lane * 40, 40));
  }
}

TEST(NetworkPolicyTest, NotFiniteViewIsReportedAndNothingWritten) {
  const auto policy = Make();
  Call call(kLanes);
  call.view[4 * testing::kAfterstatesFloats + 5] = std::nanf("");
  EXPECT_EQ(call.Act(*policy, 0, kLanes), ActResult::kNotFinite);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(call.action[lane], -7);
    EXPECT_EQ(call.log_prob[lane], 7.0F);
    EXPECT_EQ(call.value[lane], 7.0F);
  }
  EXPECT_EQ(call.Act(*policy, 8, 4), ActResult::kOk);
}

// Its weights are finite, so only the call can tell.
TEST(NetworkPolicyTest, NotFiniteValueIsReportedAndNothingWritten) {
  const auto network = TrainersNetwork(9);
  for (const ParameterInfo& info : network->layout()) {
    if (!info.name.starts_with("value.")) continue;
    const std::span<float> piece = network->parameters().subspan(info.offset, info.size);
    std::fill(piece.begin(), piece.end(), 1e30F);
  }
  const auto policy = Make();
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 1), LoadResult::kLoaded);
  Call call(kLanes);
  EXPECT_EQ(call.Act(*policy, 0, kLanes), ActResult::kNotFinite);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(call.action[lane], -7);
    EXPECT_EQ(call.value[lane], 7.0F);
  }
}

TEST(NetworkPolicyTest, BadBlobsAreRefusedAndTheOldWeightsStay) {
  const auto network = TrainersNetwork(9);
  const auto policy = Make();
  ASSERT_EQ(policy->LoadWeights(BlobOf(*network), 3), LoadResult::kLoaded);
  Call before(kLanes), after(kLanes);
  ASSERT_EQ(before.Act(*policy, 0, kLanes), ActResult::kOk);
  std::vector<std::byte> blob(BlobOf(*network).begin(), BlobOf(*network).end());
  EXPECT_EQ(policy->LoadWeights({blob.data(), blob.size() - 4}, 4), LoadResult::kWrongSize);
  EXPECT_EQ(policy->LoadWeights({}, 4), LoadResult::kWrongSize);
  const float infinity = INFINITY;
  std::memcpy(blob.data() + blob.size() - 4, &infinity, 4);
  EXPECT_EQ(policy->LoadWeights(blob, 4), LoadResult::kNotFinite);
  EXPECT_EQ(policy->version(), 3u);
  ASSERT_EQ(after.Act(*policy, 0, kLanes), ActResult::kOk);
  EXPECT_EQ(before.log_prob, after.log_prob);
}

TEST(NetworkPolicyTest, ZeroLanesAreFine) {
  Call call(1);
  EXPECT_EQ(call.Act(*Make(), 0, 0), ActResult::kOk);
}

}  // namespace
}  // namespace tetrion
