// What the settings of returns and of the continue head mean for the losses.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/nn/dreamer/primitives.h"
#include "lib/rl/dreamer/behaviour_loss.h"
#include "lib/rl/dreamer/lambda_return.h"
#include "lib/rl/dreamer/model_shape.h"
#include "lib/rl/dreamer/world_model_loss.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kHorizon = 4, kStarts = 3;

// A model whose heads all say something, a slow critic that says something else, and an
// imagination.
class BehaviourSettings : public ::testing::Test {
 protected:
  BehaviourSettings() {
    const std::vector<float> noise = testing::Noise(parameters_.size(), 8);
    for (std::size_t i = 0; i < noise.size(); ++i) parameters_[i] = 0.2F * noise[i];
    const std::vector<float> other = testing::Noise(slow_parameters_.size(), 9);
    for (std::size_t i = 0; i < other.size(); ++i) slow_parameters_[i] = 0.2F * other[i];
    const torch::NoGradGuard no_gradient;
    imagined_.feature = Numbers({kHorizon + 1, kStarts, shape_.feature_floats()}, 10);
    imagined_.action = torch::zeros({kHorizon, kStarts, shape_.actions});
    imagined_.action.select(2, 1).fill_(1.0);
    imagined_.log_probs = model_.ActorLogProbs(imagined_.feature.narrow(0, 0, kHorizon));
    chance_ = torch::sigmoid(model_.ContinueLogit(imagined_.feature));
  }

  static Tensor Numbers(std::vector<std::int64_t> shape, std::uint64_t seed) {
    const Tensor tensor = torch::empty(shape);
    const std::vector<float> noise = testing::Noise(static_cast<std::size_t>(tensor.numel()), seed);
    std::copy(noise.begin(), noise.end(), tensor.mutable_data_ptr<float>());
    return tensor;
  }
  ImaginedWorth Worth(const DreamerSettings& settings) const {
    return ComputeImaginedWorth(model_, slow_, settings, imagined_);
  }
  // From the formulas of lambda_return.h with these chances to go on, discounts included, and the
  // values of one critic.
  Tensor Returns(const Tensor& cont, const Tensor& value, double lambda) const {
    const torch::NoGradGuard no_gradient;
    const Tensor reward = TwoHotMean(model_.RewardLogits(imagined_.feature));
    const Tensor chances = cont.contiguous(), values = value.contiguous();
    const Tensor returns = torch::empty({kHorizon, kStarts});
    ImaginedReturns({.horizon = kHorizon,
                     .starts = kStarts,
                     .reward = reward.const_data_ptr<float>(),
                     .cont = chances.const_data_ptr<float>(),
                     .value = values.const_data_ptr<float>()},
                    lambda, returns.mutable_data_ptr<float>());
    return returns;
  }
  static void ExpectNear(const Tensor& got, const Tensor& want) {
    EXPECT_TRUE(torch::allclose(got, want, 1e-5, 1e-6)) << got << want;
  }

  const DreamerShape shape_ = ModelShapeOf(testing::VectorEnv(), {});
  std::vector<float> parameters_ = std::vector<float>(FloatsOf(DreamerLayout(shape_)));
  std::vector<float> slow_parameters_ =
      std::vector<float>(DreamerModule(DreamerLayout(shape_), "value").size);
  const DreamerModel model_{shape_, parameters_, {}};
  const DreamerHead slow_ = MakeDreamerCritic(shape_, slow_parameters_);
  Imagination imagined_;
  Tensor chance_;  // [H+1, N] to go on, as the head says
};

TEST_F(BehaviourSettings, TheHeadHoldsTheDiscountOrReturnsMultiplyIt) {
  const torch::NoGradGuard no_gradient;
  const Tensor value = TwoHotMean(model_.ValueLogits(imagined_.feature));
  DreamerSettings settings = {.continue_horizon = 4.0};
  const ImaginedWorth inside = Worth(settings);
  ExpectNear(inside.returns, Returns(chance_, value, settings.lambda));
  ExpectNear(inside.weight, chance_.narrow(0, 0, kHorizon).cumprod(0));
  settings.discount_in = "returns";
  const ImaginedWorth apart = Worth(settings);
  ExpectNear(apart.returns, Returns(0.75 * chance_, value, settings.lambda));
  ExpectNear(apart.weight, (0.75 * chance_.narrow(0, 0, kHorizon)).cumprod(0) / 0.75);
}

TEST_F(BehaviourSettings, StartsCountAsTheHeadOrTheDataSay) {
  const torch::NoGradGuard no_gradient;
  imagined_.start_alive = torch::tensor({1.0F, 0.0F, 1.0F});
  for (const char* discount_in : {"head", "returns"}) {
    const ImaginedWorth worth =
        Worth({.continue_horizon = 4.0, .discount_in = discount_in, .start_weight = "data"});
    EXPECT_TRUE(torch::equal(worth.weight[0], imagined_.start_alive)) << discount_in;
    EXPECT_EQ(worth.weight.select(1, 1).sum().item<float>(), 0.0F) << "a terminal start";
    const double rest = discount_in[0] == 'h' ? 1.0 : 0.75;
    ExpectNear(worth.weight[1], imagined_.start_alive * chance_[1] * rest);
  }
}

TEST_F(BehaviourSettings, WithoutAFutureReturnsAreStillNumbers) {
  for (const char* discount_in : {"head", "returns"}) {
    for (const char* start_weight : {"head", "data"}) {
      const ImaginedWorth worth = Worth(
          {.continue_horizon = 1.0, .discount_in = discount_in, .start_weight = start_weight});
      EXPECT_TRUE(worth.returns.isfinite().all().item<bool>()) << discount_in << start_weight;
      EXPECT_TRUE(worth.weight.isfinite().all().item<bool>()) << discount_in << start_weight;
    }
  }
}

TEST_F(BehaviourSettings, ReturnsAndAdvantagesTakeTheValuesOfEitherCritic) {
  const torch::NoGradGuard no_gradient;
  const DreamerSettings settings = {.return_critic = "slow"};
  const ImaginedWorth worth = Worth(settings);
  const Tensor slow = TwoHotMean(slow_(imagined_.feature));
  ExpectNear(worth.baseline, slow.narrow(0, 0, kHorizon));
  ExpectNear(worth.returns, Returns(chance_, slow, settings.lambda));
  const ImaginedWorth online = Worth({});
  EXPECT_TRUE(torch::equal(online.baseline, online.value));
  EXPECT_FALSE(torch::equal(online.returns, worth.returns));
}

TEST_F(BehaviourSettings, TheContinueHeadsTargetIsTheChanceWithOrWithoutTheDiscount) {
  EXPECT_EQ(DiscountOf({.continue_horizon = 4.0}).in_head, 0.75);
  EXPECT_EQ(DiscountOf({.continue_horizon = 4.0, .discount_in = "returns"}).in_head, 1.0);
}

TEST_F(BehaviourSettings, SharesOfTheUniformDistributionAndTheNormAreTheModels) {
  const DreamerShape shape = ModelShapeOf(
      testing::VectorEnv(), {.size = "1m", .norm = "layer", .unimix = 0.25, .actor_unimix = 0.5});
  EXPECT_EQ(shape.size, DreamerSizeOf("1m"));
  EXPECT_TRUE(shape.layer_norm);
  EXPECT_EQ(shape.unimix, 0.25);
  EXPECT_EQ(shape.actor_unimix, 0.5);
  const DreamerShape plain = ModelShapeOf(testing::VectorEnv(), {});
  EXPECT_FALSE(plain.layer_norm);
  EXPECT_EQ(plain.unimix, 0.01);
  EXPECT_EQ(plain.actor_unimix, 0.01);
}

}  // namespace
}  // namespace tetrion
