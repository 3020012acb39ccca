#include "lib/rl/guarded_adam.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tetrion {
namespace {

using ::testing::HasSubstr;

// Four parameters, the last two the value's.
class Plain final : public Network {
 public:
  Plain() {
    AddParameter("policy.a", {1});
    AddParameter("policy.b", {1});
    AddParameter("value.a", {1});
    AddParameter("value.b", {1});
    AllocateBuffers(/*training=*/true);
  }
  void Infer(const float*, const std::uint64_t*, int, float*, float*) override {}
  void Forward(const float*, const std::uint64_t*, int, float*, float*) override {}
  void Backward(const float*, const float*) override {}

  void SetGradients(const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), gradients().begin());
  }
  std::vector<float> Parameters() const { return {parameters_.begin(), parameters_.end()}; }
};

// With an epsilon far above the gradient Adam's first step is rate * gradient / epsilon.
constexpr AdamConfig kLinear = {.epsilon = 1e4};

TEST(GuardedAdamTest, ValueAndTheRestAreClippedByTheirOwnNorms) {
  Plain network;
  GuardedAdam adam(kLinear, /*grad_clip=*/1.0, network);
  network.SetGradients({0.3F, 0.4F, 300.0F, -400.0F});
  const AdamStep step = adam.Step(network, /*learning_rate=*/1e4);
  EXPECT_EQ(step.problem, "");
  EXPECT_NEAR(step.grad_norm, std::hypot(0.5, 500.0), 1e-4);
  const std::vector<float> after = network.Parameters();
  EXPECT_NEAR(after[0], -0.3, 1e-3);  // as given: its norm is 0.5
  EXPECT_NEAR(after[1], -0.4, 1e-3);
  EXPECT_NEAR(after[2], -0.6, 1e-3);  // clipped to norm 1
  EXPECT_NEAR(after[3], 0.8, 1e-3);
}

TEST(GuardedAdamTest, PolicysStepDoesNotDependOnTheValuesError) {
  std::vector<float> policy;
  for (const float error : {1e-3F, 1.0F, 1e6F}) {
    Plain network;
    GuardedAdam adam({}, /*grad_clip=*/0.5, network);
    for (int i = 0; i < 5; ++i) {
      network.SetGradients({2.0F, -1.0F, error, error});
      EXPECT_EQ(adam.Step(network, 1e-3).problem, "");
    }
    policy.push_back(network.Parameters()[0]);
  }
  EXPECT_EQ(policy[0], policy[1]);
  EXPECT_EQ(policy[0], policy[2]);
}

TEST(GuardedAdamTest, WithoutABoundNothingIsClipped) {
  Plain network;
  GuardedAdam adam(kLinear, /*grad_clip=*/0.0, network);
  network.SetGradients({3.0F, 4.0F, 5.0F, 12.0F});
  EXPECT_EQ(adam.Step(network, 1e4).problem, "");
  EXPECT_NEAR(network.Parameters()[3], -12.0, 0.1);
}

TEST(GuardedAdamTest, StepWithAGradientThatIsNotFiniteIsNotTakenAndNamed) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Plain network;
    GuardedAdam adam({}, 0.5, network);
    network.SetGradients({1.0F, bad, 1.0F, bad});
    EXPECT_THAT(adam.Step(network, 1e-3).problem, HasSubstr("gradient of policy.b"));
    EXPECT_EQ(network.Parameters(), std::vector<float>(4, 0.0F));
    EXPECT_EQ(adam.adam().steps(), 0);
  }
}

// 1e20 squared is beyond a float: without the guard the parameter is NaN one step later.
TEST(GuardedAdamTest, StepThatOverflowsIsTakenBackAndTheNextOneWorks) {
  Plain network, never;
  GuardedAdam adam({}, /*grad_clip=*/0.0, network), calm({}, 0.0, never);
  for (Plain* each : {&network, &never}) each->SetGradients({1.0F, 1.0F, 1.0F, 1.0F});
  EXPECT_EQ(adam.Step(network, 1e-3).problem, "");
  EXPECT_EQ(calm.Step(never, 1e-3).problem, "");
  for (int i = 0; i < 3; ++i) {
    network.SetGradients({1.0F, 1.0F, 1e20F, 1.0F});
    EXPECT_THAT(adam.Step(network, 1e-3).problem, HasSubstr("parameter value.a"));
  }
  for (Plain* each : {&network, &never}) each->SetGradients({1.0F, 1.0F, 1.0F, 1.0F});
  EXPECT_EQ(adam.Step(network, 1e-3).problem, "");
  EXPECT_EQ(calm.Step(never, 1e-3).problem, "");
  EXPECT_EQ(network.Parameters(), never.Parameters());
  EXPECT_EQ(adam.adam().steps(), 2);
}

}  // namespace
}  // namespace tetrion
