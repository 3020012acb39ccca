#include "lib/collect/decider.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "tests/support/fake_lanes.h"

namespace tetrion {
namespace {

using testing::CountingEnv;
using testing::ScriptedAnswers;
using testing::ScriptedPolicy;

// A row of two lanes with masks in memory of the test's.
struct Row {
  Row() : memory(layout.row_bytes), view(layout, memory.data()) {}
  const RowLayout layout{{.record_bytes = 16, .lanes = 2, .has_mask = true}};
  std::vector<std::byte> memory;
  RowView view;
};

// Keeps what it was shown.
class SeeingPolicy final : public Policy {
 public:
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override {
    lane_ids.assign(in.lane_ids, in.lane_ids + in.n);
    masks.assign(in.masks, in.masks + in.n);
    token_ids.assign(in.token_ids, in.token_ids + in.n);
    steps.assign(in.steps, in.steps + in.n);
    for (int i = 0; i < in.n; ++i) out.action[i] = i + 1;
    return result;
  }
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t v) override {
    newest = v;
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return newest; }

  ActResult result = ActResult::kOk;
  std::uint32_t newest = 0;
  std::vector<std::uint32_t> lane_ids, steps;
  std::vector<std::uint64_t> masks, token_ids;
};

// Weights that are there from the second look on.
struct LateWeights final : WeightsSource {
  bool Refresh(WeightsUser& user) override {
    if (++looks < 2) return false;
    EXPECT_EQ(user.LoadWeights({}, 5), LoadResult::kLoaded);
    return true;
  }
  bool LearnerGone() const override { return gone; }
  int looks = 0;
  bool gone = false;
};

TEST(LocalDeciderTest, PolicySeesLanesByIdWithTheirTokensAndNoEmptyMask) {
  auto seeing = std::make_unique<SeeingPolicy>();
  SeeingPolicy& policy = *seeing;
  LocalDecider decider(std::move(seeing), nullptr, 2);
  CountingEnv env(2);
  Row row;
  env.Reset(0, {.id = 40, .max_steps = 9});
  env.Reset(1, {.id = 41, .max_steps = 9});
  row.view.mask[0] = 6;
  row.view.mask[1] = 0;
  ASSERT_EQ(decider.Decide(row.view, env), Decision::kDecided);
  EXPECT_EQ(policy.lane_ids, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(policy.token_ids, (std::vector<std::uint64_t>{40, 41}));
  EXPECT_EQ(policy.masks, (std::vector<std::uint64_t>{6, 1}));
  EXPECT_EQ(row.view.action[1], 2);
}

// Draws are of token and step: with the same step over and over, each row would get the same ones.
TEST(LocalDeciderTest, PolicyIsToldHowManyActionsEachLaneHasTaken) {
  auto seeing = std::make_unique<SeeingPolicy>();
  SeeingPolicy& policy = *seeing;
  LocalDecider decider(std::move(seeing), nullptr, 2);
  CountingEnv env(2);
  Row row;
  const std::vector<int> both = {0, 1}, second = {1};
  const std::vector<std::int32_t> actions(2);
  for (const int lane : both) env.Reset(lane, {.id = 44, .max_steps = 9});
  for (const std::vector<int>* active : {&both, &both, &second, &second}) {
    env.Step(*active, actions.data(), row.view);
  }
  row.view.mask[0] = row.view.mask[1] = 1;
  ASSERT_EQ(decider.Decide(row.view, env), Decision::kDecided);
  EXPECT_EQ(policy.steps, (std::vector<std::uint32_t>{1, 3}));
}

TEST(LocalDeciderTest, FailureSaysWhetherTheWeightsAreToBlame) {
  auto seeing = std::make_unique<SeeingPolicy>();
  SeeingPolicy& policy = *seeing;
  LocalDecider decider(std::move(seeing), nullptr, 2);
  const CountingEnv env(2);
  Row row;
  policy.result = ActResult::kNotFinite;
  EXPECT_EQ(decider.Decide(row.view, env), Decision::kNotFinite);
  policy.result = ActResult::kGiveUp;
  EXPECT_EQ(decider.Decide(row.view, env), Decision::kGiveUp);
}

TEST(LocalDeciderTest, WithoutWeightsItIsReadyAtOnce) {
  const auto decider =
      std::make_unique<LocalDecider>(std::make_unique<ScriptedPolicy>(), nullptr, 1);
  EXPECT_EQ(decider->Look(0), AnswererState::kReady);
  EXPECT_FALSE(decider->PeerGone());
}

TEST(LocalDeciderTest, WaitsForTheFirstWeights) {
  LateWeights weights;
  LocalDecider decider(std::make_unique<SeeingPolicy>(), &weights, 1);
  EXPECT_EQ(decider.Look(0), AnswererState::kAbsent);
  EXPECT_EQ(decider.Look(1), AnswererState::kReady);
  EXPECT_EQ(decider.version(), 5U);
  weights.gone = true;
  EXPECT_TRUE(decider.PeerGone());
}

TEST(StreamedDeciderTest, RowsAreDecidedLaterWithTheAnswersVersion) {
  ScriptedAnswers answers(2);
  StreamedDecider decider(answers);
  const CountingEnv env(2);
  Row row;
  EXPECT_EQ(decider.Decide(row.view, env), Decision::kLater);
  EXPECT_EQ(decider.version(), 0U);
  std::int32_t actions[2] = {};
  ASSERT_EQ(decider.Take(3, actions, 0), AnswerResult::kAnswer);
  EXPECT_EQ(actions[1], 2);
  EXPECT_EQ(decider.version(), 7U);
  EXPECT_EQ(answers.asked, (std::vector<std::uint64_t>{3}));
}

TEST(StreamedDeciderTest, ImpossibleAnswerIsAnErrorWithItsReason) {
  ScriptedAnswers answers(1);
  StreamedDecider decider(answers);
  std::int32_t action = 0;
  answers.next = AnswerResult::kBroken;
  EXPECT_THROW((void)decider.Take(0, &action, 0), Error);
  answers.look = AnswererState::kBroken;
  EXPECT_THROW((void)decider.Look(0), Error);
}

TEST(DeciderDeathTest, RowThatWasDecidedAtOnceHasNoAnswerToTake) {
  LocalDecider decider(std::make_unique<ScriptedPolicy>(), nullptr, 1);
  std::int32_t action = 0;
  EXPECT_DEATH((void)decider.Take(0, &action, 0), "decided at once");
}

}  // namespace
}  // namespace tetrion
