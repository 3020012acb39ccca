#include "lib/policy/dreamer_policy.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "lib/frame/row_layout.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

constexpr int kLanes = 6;
constexpr int kFloats = 4;

std::vector<float> Weights(const EnvSpec& env) {
  const DreamerShape shape = DreamerShapeOf(env, "nano");
  std::vector<float> all(FloatsOf(DreamerLayout(shape)));
  FillDreamerInitial(shape, 3, all);
  all.resize(ActingFloats(shape));
  // Far from uniform, so that choices tell states apart.
  const std::vector<float> noise = testing::Noise(all.size(), 4);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += 0.2F * noise[i];
  return all;
}

std::span<const std::byte> BlobOf(const std::vector<float>& weights) {
  return std::as_bytes(std::span(weights));
}

std::unique_ptr<Policy> Make(bool greedy = false, const EnvSpec& env = testing::VectorEnv()) {
  auto policy = MakeDreamerPolicy({.shape = DreamerShapeOf(env, "nano"),
                                   .seed = 5,
                                   .greedy = greedy,
                                   .max_lanes = kLanes,
                                   .lane_ids = 2 * kLanes},
                                  env);
  EXPECT_EQ(policy->LoadWeights(BlobOf(Weights(env)), 1), LoadResult::kLoaded);
  return policy;
}

// What one lane plays: its observations and draws are functions of token and step.
struct Lane {
  std::uint32_t id = 0;
  std::uint64_t token = 0;
  std::uint32_t step = 0;
};
struct Choice {
  std::int32_t action = -7;
  float log_prob = 7;
};

// One Act of `lanes`, each a step further afterwards.
std::vector<Choice> Step(Policy& policy, std::vector<Lane*> lanes) {
  std::vector<float> view;
  std::vector<std::uint8_t> flags;
  std::vector<std::uint32_t> ids, steps;
  std::vector<std::uint64_t> tokens;
  for (Lane* lane : lanes) {
    const auto seen = testing::Noise(kFloats, 1000 * lane->token + lane->step);
    view.insert(view.end(), seen.begin(), seen.end());
    flags.push_back(lane->step == 0 ? kIsFirst : 0);
    ids.push_back(lane->id);
    tokens.push_back(lane->token);
    steps.push_back(lane->step++);
  }
  std::vector<std::int32_t> action(lanes.size(), -7);
  std::vector<float> log_prob(lanes.size(), 7);
  EXPECT_EQ(policy.Act({.n = static_cast<int>(lanes.size()),
                        .records = reinterpret_cast<const std::byte*>(view.data()),
                        .flags = flags.data(),
                        .lane_ids = ids.data(),
                        .token_ids = tokens.data(),
                        .steps = steps.data()},
                       {.action = action.data(), .log_prob = log_prob.data()}),
            ActResult::kOk);
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < lanes.size(); ++i) choices.push_back({action[i], log_prob[i]});
  return choices;
}

// `steps` choices of an episode that one policy plays alone.
std::vector<Choice> PlayAlone(Policy& policy, Lane lane, int steps) {
  std::vector<Choice> choices;
  for (int i = 0; i < steps; ++i) choices.push_back(Step(policy, {&lane}).front());
  return choices;
}

// The choices agree; log-probabilities to what sums of another order differ by.
void ExpectEqual(const std::vector<Choice>& a, const std::vector<Choice>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].action, b[i].action) << i;
    EXPECT_NEAR(a[i].log_prob, b[i].log_prob, 1e-4) << i;
  }
}

TEST(DreamerPolicyTest, StateBelongsToTheLaneIdWhateverTheOrderAndSplitOfBatches) {
  constexpr int kSteps = 5;
  std::vector<Lane> lanes;
  std::vector<std::vector<Choice>> alone, together(kLanes);
  for (std::uint32_t l = 0; l < kLanes; ++l) {
    lanes.push_back({.id = 2 * l + 1, .token = 100 + l});
    alone.push_back(PlayAlone(*Make(), lanes.back(), kSteps));
  }
  const auto policy = Make();
  for (int step = 0; step < kSteps; ++step) {
    // Another order every time, in two batches of other sizes.
    std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
    std::rotate(order.begin(), order.begin() + step, order.end());
    if (step % 2 == 1) std::reverse(order.begin(), order.end());
    const std::size_t cut = 1 + static_cast<std::size_t>(step) % 4;
    for (const auto& [from, to] : {std::pair{std::size_t{0}, cut}, std::pair{cut, order.size()}}) {
      std::vector<Lane*> batch;
      for (std::size_t i = from; i < to; ++i) batch.push_back(&lanes[order[i]]);
      const std::vector<Choice> choices = Step(*policy, batch);
      for (std::size_t i = from; i < to; ++i) together[order[i]].push_back(choices[i - from]);
    }
  }
  for (std::size_t l = 0; l < kLanes; ++l) ExpectEqual(together[l], alone[l]);
}

TEST(DreamerPolicyTest, WhatWasSeenBeforeMatters) {
  Lane lane = {.token = 7};
  const auto policy = Make();
  for (int i = 0; i < 3; ++i) (void)Step(*policy, {&lane});
  Lane late = {.token = 7, .step = 3};  // the same observation and draws, nothing seen before
  const float with = Step(*policy, {&lane}).front().log_prob;
  const float without = Step(*Make(), {&late}).front().log_prob;
  EXPECT_GT(std::abs(with - without), 1e-3F);
}

TEST(DreamerPolicyTest, AnEpisodeBeginsWithoutTheStateOfTheOneBefore) {
  const auto policy = Make();
  (void)PlayAlone(*policy, {.id = 3, .token = 1}, 4);
  // Also the id's next owner: ids are given again.
  ExpectEqual(PlayAlone(*policy, {.id = 3, .token = 2}, 4),
              PlayAlone(*Make(), {.id = 3, .token = 2}, 4));
}

TEST(DreamerPolicyTest, AFirstRowSeenInTheMiddleOfAnEpisodeStartsFromNothing) {
  const auto policy = Make();
  ExpectEqual(PlayAlone(*policy, {.id = 1, .token = 9, .step = 17}, 3),
              PlayAlone(*policy, {.id = 2, .token = 9, .step = 17}, 3));
}

TEST(DreamerPolicyTest, GreedyTakesTheMoreProbableAction) {
  for (const Choice& choice : PlayAlone(*Make(/*greedy=*/true), {.token = 11}, 20)) {
    EXPECT_GE(choice.log_prob, std::log(0.5F) - 1e-5F);
  }
}

TEST(DreamerPolicyTest, EveryActionKeepsItsShareOfTheUniformDistribution) {
  const EnvSpec env = testing::VectorEnv();
  std::vector<float> weights = Weights(env);
  const DreamerSlice actor = DreamerModule(DreamerLayout(DreamerShapeOf(env, "nano")), "actor");
  weights[actor.offset + actor.size - 1] = 1000;  // the last bias: action 1 and no other
  const auto policy = Make(/*greedy=*/true);
  ASSERT_EQ(policy->LoadWeights(BlobOf(weights), 2), LoadResult::kLoaded);
  const Choice choice = PlayAlone(*policy, {.token = 1}, 1).front();
  EXPECT_EQ(choice.action, 1);
  EXPECT_NEAR(choice.log_prob, std::log(0.99 + 0.01 / 2), 1e-6);
}

TEST(DreamerPolicyTest, MaskedActionsAreNeverTaken) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  const auto policy = Make(/*greedy=*/false, env);
  const std::vector<float> view(448, 0.5F);
  const std::uint64_t mask = (1U << 3) | (std::uint64_t{1} << 38);
  const std::uint32_t id = 0;
  int seen[2] = {};
  for (std::uint64_t token = 0; token < 40; ++token) {
    const std::uint8_t flags = kIsFirst;
    const std::uint32_t step = 0;
    std::int32_t action = -1;
    float log_prob = 1, value = 7;
    ASSERT_EQ(policy->Act({.n = 1,
                           .records = reinterpret_cast<const std::byte*>(view.data()),
                           .masks = &mask,
                           .flags = &flags,
                           .lane_ids = &id,
                           .token_ids = &token,
                           .steps = &step},
                          {.action = &action, .log_prob = &log_prob, .value = &value}),
              ActResult::kOk);
    ASSERT_TRUE(action == 3 || action == 38) << action;
    EXPECT_GT(log_prob, std::log(0.004F)) << "half of the uniform share of two legal actions";
    EXPECT_EQ(value, 0) << "the critic stays with the learner";
    ++seen[action == 38];
  }
  EXPECT_EQ(seen[0] + seen[1], 40);
}

// One Act of a first row with masks; the greedy action is then the most probable legal one.
Choice ActMasked(Policy& policy, std::uint64_t mask, std::uint32_t step) {
  const std::vector<float> view(448, 0.5F);
  const std::uint8_t flags = kIsFirst;
  const std::uint32_t id = 0;
  const std::uint64_t token = 3;
  Choice choice;
  EXPECT_EQ(policy.Act({.n = 1,
                        .records = reinterpret_cast<const std::byte*>(view.data()),
                        .masks = &mask,
                        .flags = &flags,
                        .lane_ids = &id,
                        .token_ids = &token,
                        .steps = &step},
                       {.action = &choice.action, .log_prob = &choice.log_prob}),
            ActResult::kOk);
  return choice;
}

TEST(DreamerPolicyTest, UniformShareIsDividedAmongTheLegalActions) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  std::vector<float> weights = Weights(env);
  const DreamerSlice actor = DreamerModule(DreamerLayout(DreamerShapeOf(env, "nano")), "actor");
  const auto actions = static_cast<std::size_t>(env.action.count);
  weights[actor.offset + actor.size - actions + 3] = 1000;  // action 3 and no other
  const auto policy = Make(/*greedy=*/true, env);
  ASSERT_EQ(policy->LoadWeights(BlobOf(weights), 2), LoadResult::kLoaded);
  const Choice choice = ActMasked(*policy, 1U << 3 | std::uint64_t{1} << 38, 0);
  EXPECT_EQ(choice.action, 3);
  EXPECT_NEAR(choice.log_prob, std::log(0.99 + 0.01 / 2), 1e-6);
}

// With the same draws in every step an episode's states would hang together by chance.
TEST(DreamerPolicyTest, EveryStepDrawsAStateOfItsOwn) {
  const EnvSpec env = testing::MaskedPlanesEnv();
  const auto policy = Make(/*greedy=*/true, env);
  std::set<float> seen;
  for (std::uint32_t step = 0; step < 8; ++step) {
    seen.insert(ActMasked(*policy, ~std::uint64_t{0}, step).log_prob);
  }
  EXPECT_GT(seen.size(), 4U);
}

TEST(DreamerPolicyTest, NotFiniteViewIsReportedAndChangesNothing) {
  const auto policy = Make();
  Lane lane = {.id = 4, .token = 21}, other = lane;
  (void)Step(*policy, {&lane});
  const std::vector<float> view(kFloats, std::nanf(""));
  const std::uint8_t flags = 0;
  std::int32_t action = -7;
  float log_prob = 7;
  EXPECT_EQ(policy->Act({.n = 1,
                         .records = reinterpret_cast<const std::byte*>(view.data()),
                         .flags = &flags,
                         .lane_ids = &lane.id,
                         .token_ids = &lane.token,
                         .steps = &lane.step},
                        {.action = &action, .log_prob = &log_prob}),
            ActResult::kNotFinite);
  EXPECT_EQ(action, -7);
  EXPECT_EQ(log_prob, 7);
  const auto untouched = Make();
  (void)Step(*untouched, {&other});
  ExpectEqual(Step(*policy, {&lane}), Step(*untouched, {&other}));
}

TEST(DreamerPolicyTest, BadBlobsAreRefusedAndTheOldWeightsStay) {
  const auto policy = Make();
  const std::vector<Choice> before = PlayAlone(*policy, {.token = 31}, 2);
  std::vector<float> weights = Weights(testing::VectorEnv());
  EXPECT_EQ(policy->WeightsBytes(), weights.size() * sizeof(float));
  EXPECT_EQ(policy->LoadWeights(BlobOf(weights).first(8), 2), LoadResult::kWrongSize);
  weights.back() = std::nanf("");
  EXPECT_EQ(policy->LoadWeights(BlobOf(weights), 2), LoadResult::kNotFinite);
  EXPECT_EQ(policy->version(), 1u);
  ExpectEqual(PlayAlone(*policy, {.token = 31}, 2), before);
}

TEST(DreamerPolicyTest, ActingKeepsNoMemory) {
  const auto policy = Make();
  Lane lane = {.token = 41};
  // Libraries make a buffer at its first need, which may come late: a leak grows in every block.
  std::size_t least_growth = std::numeric_limits<std::size_t>::max();
  for (int block = 0; block < 5; ++block) {
    const std::size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 300; ++i) (void)Step(*policy, {&lane});
    const std::size_t after = mallinfo2().uordblks;
    least_growth = std::min(least_growth, after > before ? after - before : 0);
  }
  EXPECT_LE(least_growth, 4096u);  // 300 chunks of the smallest size are more than twice that
}

TEST(DreamerPolicyTest, ZeroLanesAreFine) {
  EXPECT_TRUE(Step(*Make(), {}).empty());
}

}  // namespace
}  // namespace tetrion
