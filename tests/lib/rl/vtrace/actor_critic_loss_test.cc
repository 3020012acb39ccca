#include "lib/rl/vtrace/actor_critic_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

constexpr float kMasked = -1e9F;
constexpr ActorCriticCoefficients kUsualCoefficients = {
    .value_coef = 0.5, .entropy_coef = 0.01, .ppo_clip = 0.0};

// Three rows of three actions: the second is a last row, the third has a masked action.
struct Tiny {
  std::vector<float> logits = {0.3F, -0.2F, 0.9F, 1.0F, 2.0F, 3.0F, 0.1F, kMasked, -0.4F};
  std::vector<float> value = {0.5F, 9.0F, -0.3F};
  std::vector<std::int32_t> action = {2, 0, 0};
  std::vector<std::uint8_t> flags = {0, kIsLast | kTerminated, 0};
  std::vector<float> behaviour = {-0.9F, -1.0F, -1.2F};
  std::vector<float> target = {1.0F, 0.0F, 0.2F};
  std::vector<float> advantage = {0.7F, 5.0F, -1.1F};
  std::vector<float> grad_logits = std::vector<float>(9);  // comes as the probabilities
  std::vector<float> grad_value = std::vector<float>(3, NAN);
  std::int64_t trained = -1;

  ActorCriticLoss Run(const ActorCriticCoefficients& coefficients) {
    std::vector<float> normaliser, entropies;
    for (std::size_t i = 0; i < 3; ++i) {
      double sum = 0, entropy = 0;
      for (std::size_t a = 0; a < 3; ++a) sum += std::exp(static_cast<double>(logits[3 * i + a]));
      for (std::size_t a = 0; a < 3; ++a) {
        const double p = std::exp(static_cast<double>(logits[3 * i + a])) / sum;
        if (p > 0) entropy -= p * std::log(p);
        grad_logits[3 * i + a] = static_cast<float>(p);
      }
      normaliser.push_back(static_cast<float>(std::log(sum)));
      entropies.push_back(static_cast<float>(entropy));
    }
    const ActorCriticInput in = {.rows = 3,
                                 .actions = 3,
                                 .logits = logits.data(),
                                 .log_normaliser = normaliser.data(),
                                 .entropy = entropies.data(),
                                 .value = value.data(),
                                 .action = action.data(),
                                 .flags = flags.data(),
                                 .behaviour_log_prob = behaviour.data(),
                                 .target = target.data(),
                                 .advantage = advantage.data()};
    trained = CountTrained(in);
    ActorCriticLoss loss;  // in two parts, as threads would share them
    for (const auto& [begin, end] : {std::pair{0, 1}, std::pair{1, 3}}) {
      loss.Add(ComputeActorCriticLoss(coefficients, in, begin, end, trained, grad_logits.data(),
                                      grad_value.data()));
    }
    return loss;
  }
};

// The textbook expression in double.
double SlowTotal(const ActorCriticCoefficients& c, const Tiny& tiny,
                 const std::vector<double>& logits, const std::vector<double>& value) {
  double total = 0;
  for (std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    double sum = 0;
    for (std::size_t a = 0; a < 3; ++a) sum += std::exp(logits[3 * i + a]);
    double entropy = 0;
    for (std::size_t a = 0; a < 3; ++a) {
      const double p = std::exp(logits[3 * i + a]) / sum;
      if (p > 0) entropy -= p * std::log(p);
    }
    const double log_prob =
        logits[3 * i + static_cast<std::size_t>(tiny.action[i])] - std::log(sum);
    double policy = -tiny.advantage[i] * log_prob;
    if (c.ppo_clip > 0) {
      const double ratio = std::exp(log_prob - tiny.behaviour[i]);
      const double clipped = std::min(std::max(ratio, 1 - c.ppo_clip), 1 + c.ppo_clip);
      policy = -std::min(ratio * tiny.advantage[i], clipped * tiny.advantage[i]);
    }
    const double error = tiny.target[i] - value[i];
    total += policy + c.value_coef * 0.5 * error * error - c.entropy_coef * entropy;
  }
  return total / 2;
}

class LossGradientTest : public ::testing::TestWithParam<ActorCriticCoefficients> {};

TEST_P(LossGradientTest, LossAndGradientMatchTheFormula) {
  Tiny tiny;
  const ActorCriticLoss loss = tiny.Run(GetParam());
  std::vector<double> logits(tiny.logits.begin(), tiny.logits.end());
  std::vector<double> value(tiny.value.begin(), tiny.value.end());
  EXPECT_EQ(tiny.trained, 2);
  EXPECT_NEAR(loss.total, SlowTotal(GetParam(), tiny, logits, value), 1e-6);
  EXPECT_NEAR(
      loss.total,
      loss.policy + GetParam().value_coef * loss.value - GetParam().entropy_coef * loss.entropy,
      1e-12);
  constexpr double kStep = 1e-5;
  const auto quotient = [&](double& variable) {
    const double kept = variable;
    variable = kept + kStep;
    const double up = SlowTotal(GetParam(), tiny, logits, value);
    variable = kept - kStep;
    const double down = SlowTotal(GetParam(), tiny, logits, value);
    variable = kept;
    return (up - down) / (2 * kStep);
  };
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(tiny.grad_logits[i], quotient(logits[i]), 1e-5) << i;
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(tiny.grad_value[i], quotient(value[i]), 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Coefficients, LossGradientTest,
                         ::testing::Values(kUsualCoefficients,
                                           ActorCriticCoefficients{0.0, 0.0, 0.0},
                                           ActorCriticCoefficients{2.0, 0.3, 0.0},
                                           ActorCriticCoefficients{0.5, 0.01, 0.2},
                                           ActorCriticCoefficients{0.5, 0.0, 0.05},
                                           ActorCriticCoefficients{0.5, 0.0, 1.5}));

TEST(ActorCriticLossTest, LastRowsHaveNoInfluenceAtAll) {
  Tiny plain, changed;
  changed.logits[3] = 50.0F;
  changed.value[1] = -1e6F;
  changed.advantage[1] = 1e6F;
  EXPECT_EQ(plain.Run(kUsualCoefficients).total, changed.Run(kUsualCoefficients).total);
  EXPECT_EQ(plain.grad_logits, changed.grad_logits);
  EXPECT_EQ(plain.grad_value, changed.grad_value);
}

TEST(ActorCriticLossTest, OnlyLastRowsMeanNoLossAndZeroGradient) {
  Tiny tiny;
  tiny.flags.assign(3, kIsLast);
  const ActorCriticLoss loss = tiny.Run(kUsualCoefficients);
  EXPECT_EQ(tiny.trained, 0);
  EXPECT_EQ(loss.total, 0.0);
  EXPECT_EQ(tiny.grad_logits, std::vector<float>(9, 0.0F));
  EXPECT_EQ(tiny.grad_value, std::vector<float>(3, 0.0F));
}

TEST(ActorCriticLossTest, NotANumberShowsInTheTotal) {
  Tiny tiny;
  tiny.advantage[0] = NAN;
  EXPECT_FALSE(std::isfinite(tiny.Run(kUsualCoefficients).total));
  Tiny other;
  other.logits[1] = NAN;  // and with it the row's normaliser and entropy
  EXPECT_FALSE(std::isfinite(other.Run(kUsualCoefficients).total));
}

TEST(ActorCriticLossTest, EntropyOfUniformLogitsIsTheLogarithmOfTheirNumber) {
  Tiny tiny;
  tiny.logits = {1.0F, 1.0F, 1.0F, 0, 0, 0, 2.0F, 2.0F, 2.0F};
  EXPECT_NEAR(tiny.Run(kUsualCoefficients).entropy, std::log(3.0), 1e-6);
}

TEST(ValueFitTest, IsOfRowsThatHaveATarget) {
  const std::vector<float> target = {1.0F, 100.0F, 3.0F}, value = {1.5F, 0.0F, 2.5F};
  std::vector<std::uint8_t> flags = {0, kIsLast, 0};
  const auto fit = [&] {
    return MeasureFit(
        {.rows = 3, .value = value.data(), .flags = flags.data(), .target = target.data()});
  };
  EXPECT_DOUBLE_EQ(fit().target_square, 5.0);
  EXPECT_DOUBLE_EQ(fit().explained_variance, 1.0 - 0.25 / 1.0);
  flags[2] = kIsLast;
  EXPECT_DOUBLE_EQ(fit().explained_variance, 0.0) << "one target explains nothing";
  flags[0] = kIsLast;
  EXPECT_DOUBLE_EQ(fit().target_square, 0.0);
}

TEST(ValueFitTest, TargetsThatAreAllOneExplainNothingHoweverTheyRound) {
  for (const float target : {0.1F, 0.693147F, 1e6F / 3}) {
    const std::vector<float> targets(2048, target);
    std::vector<float> values(targets.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.001F * static_cast<float>(i);
    const std::vector<std::uint8_t> flags(targets.size(), 0);
    const ValueFit fit = MeasureFit({.rows = static_cast<std::int64_t>(targets.size()),
                                     .value = values.data(),
                                     .flags = flags.data(),
                                     .target = targets.data()});
    EXPECT_EQ(fit.explained_variance, 0.0) << target;
  }
}

}  // namespace
}  // namespace tetrion
