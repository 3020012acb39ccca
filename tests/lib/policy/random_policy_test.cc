#include "lib/policy/random_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

// Lanes with the arrays a PolicyInput points to.
struct Lanes {
  explicit Lanes(int n)
      : flags(static_cast<std::size_t>(n), 0),
        masks(static_cast<std::size_t>(n), ~std::uint64_t{0}),
        token_ids(static_cast<std::size_t>(n), 0),
        steps(static_cast<std::size_t>(n), 0),
        action(static_cast<std::size_t>(n), -1),
        log_prob(static_cast<std::size_t>(n), 99.0F),
        value(static_cast<std::size_t>(n), 99.0F) {}

  void Act(RandomPolicy& policy, bool with_masks) {
    const PolicyInput in = {.n = static_cast<int>(flags.size()),
                            .masks = with_masks ? masks.data() : nullptr,
                            .flags = flags.data(),
                            .token_ids = token_ids.data(),
                            .steps = steps.data()};
    ASSERT_EQ(policy.Act(in, {action.data(), log_prob.data(), value.data()}), ActResult::kOk);
  }

  std::vector<std::uint8_t> flags;
  std::vector<std::uint64_t> masks;
  std::vector<std::uint64_t> token_ids;
  std::vector<std::uint32_t> steps;
  std::vector<std::int32_t> action;
  std::vector<float> log_prob;
  std::vector<float> value;
};

TEST(RandomPolicyTest, LegalActionsAreEquallyLikelyAndOthersNeverChosen) {
  RandomPolicy policy(1, {.count = 40, .has_mask = true});
  constexpr std::uint64_t kMask = (1ULL << 3) | (1ULL << 17) | (1ULL << 39) | (1ULL << 55);
  constexpr int kDraws = 30'000;
  Lanes lanes(kDraws);
  for (std::size_t i = 0; i < kDraws; ++i) lanes.masks[i] = kMask, lanes.token_ids[i] = i;
  lanes.Act(policy, true);
  std::vector<int> counts(64);
  for (std::size_t i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(lanes.action[i])];
    ASSERT_FLOAT_EQ(lanes.log_prob[i], -std::log(3.0F));
    ASSERT_EQ(lanes.value[i], 0.0F);
  }
  EXPECT_EQ(counts[3] + counts[17] + counts[39], kDraws);  // bit 55 is no action of 40
  for (const int action : {3, 17, 39}) {
    EXPECT_NEAR(counts[static_cast<std::size_t>(action)], kDraws / 3, 5 * std::sqrt(kDraws / 4.5));
  }
}

TEST(RandomPolicyTest, WithoutMasksEveryActionIsLegal) {
  RandomPolicy policy(1, {.count = 2});
  Lanes lanes(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) lanes.steps[i] = i;
  lanes.Act(policy, false);
  int ones = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_GE(lanes.action[i], 0);
    ASSERT_LE(lanes.action[i], 1);
    ones += lanes.action[i];
    ASSERT_FLOAT_EQ(lanes.log_prob[i], -std::log(2.0F));
  }
  EXPECT_NEAR(ones, 500, 80);
}

TEST(RandomPolicyTest, ChoiceFollowsFromSeedTokenAndStepAlone) {
  RandomPolicy policy(42, {.count = 7, .has_mask = true});
  Lanes many(8);
  for (std::uint32_t i = 0; i < 8; ++i) many.token_ids[i] = 100 + i, many.steps[i] = 3 * i;
  many.Act(policy, true);
  for (std::uint32_t i = 0; i < 8; ++i) {
    RandomPolicy other(42, {.count = 7, .has_mask = true});
    Lanes one(1);
    one.token_ids[0] = 100 + i;
    one.steps[0] = 3 * i;
    one.Act(other, true);
    EXPECT_EQ(one.action[0], many.action[i]);
    const PhiloxBlock draw = PhiloxDraw(42, 100 + i, 3 * i, PhiloxPurpose::kActions);
    EXPECT_EQ(static_cast<std::uint32_t>(one.action[0]), BoundedDraw(draw.word[0], 7));
  }
}

TEST(RandomPolicyTest, NoActionIsTakenWhereTheEpisodeIsLastOrNothingIsLegal) {
  RandomPolicy policy(1, {.count = 64, .has_mask = true});
  Lanes lanes(2);
  lanes.flags[0] = kIsLast | kTerminated;
  lanes.masks[1] = 0;
  lanes.Act(policy, true);
  for (const std::size_t lane : {0U, 1U}) {
    EXPECT_EQ(lanes.action[lane], 0);
    EXPECT_EQ(lanes.log_prob[lane], 0.0F);
  }
}

TEST(RandomPolicyTest, OnlyLegalActionIsCertain) {
  RandomPolicy policy(1, {.count = 64, .has_mask = true});
  Lanes lanes(1);
  lanes.masks[0] = 1ULL << 63;
  lanes.Act(policy, true);
  EXPECT_EQ(lanes.action[0], 63);
  EXPECT_EQ(lanes.log_prob[0], 0.0F);
}

TEST(RandomPolicyTest, AnyWeightsAreAcceptedAndTheirVersionKept) {
  RandomPolicy policy(1, {.count = 2});
  EXPECT_EQ(policy.WeightsBytes(), 0U);
  EXPECT_EQ(policy.LoadWeights({}, 17), LoadResult::kLoaded);
  EXPECT_EQ(policy.version(), 17U);
}

TEST(RandomPolicyDeathTest, MoreActionsThanMaskBitsIsABug) {
  EXPECT_DEATH(RandomPolicy(1, {.count = 65, .has_mask = true}), "at most 64");
  EXPECT_DEATH(RandomPolicy(1, {.count = 0}), "needs actions");
}

}  // namespace
}  // namespace tetrion
