#include "lib/rl/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tetrion {
namespace {

TEST(AdamTest, FollowsThePublishedAlgorithmInDouble) {
  Adam adam({.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3}, 3);
  std::vector<float> parameters = {1.0F, -2.0F, 0.5F};
  std::vector<double> expected(parameters.begin(), parameters.end()), m(3), v(3);
  for (int step = 1; step <= 50; ++step) {
    std::vector<float> gradient(3);
    for (std::size_t i = 0; i < 3; ++i) {
      gradient[i] = std::sin(static_cast<float>(step) + static_cast<float>(i));
      const double g = gradient[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.99 * v[i] + 0.01 * g * g;
      expected[i] -= 0.01 * (m[i] / (1 - std::pow(0.9, step))) /
                     (std::sqrt(v[i] / (1 - std::pow(0.99, step))) + 1e-3);
    }
    adam.Step(parameters, gradient, 0.01);
  }
  EXPECT_EQ(adam.steps(), 50);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(parameters[i], expected[i], 1e-5);
}

TEST(AdamTest, WeightDecayTakesItsShareApartFromTheGradientAsAdamWDoes) {
  Adam plain({}, 2), decayed({.weight_decay = 0.25}, 2);
  std::vector<float> a = {4.0F, -8.0F}, b = a;
  const std::vector<float> gradient = {3.0F, 0.0F};
  double expected[2] = {4.0, -8.0};
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> before = a;
    plain.Step(a, gradient, 0.5);
    decayed.Step(b, gradient, 0.5);
    for (std::size_t i = 0; i < 2; ++i) {
      expected[i] = expected[i] * (1 - 0.5 * 0.25) + (a[i] - before[i]);
      EXPECT_NEAR(b[i], expected[i], 1e-5);
    }
  }
  EXPECT_NEAR(b[1], -8 * std::pow(0.875, 3), 1e-5);  // no gradient: the decay alone
}

TEST(AdamTest, FirstStepIsTheLearningRateWhateverTheGradient) {
  for (const float gradient : {1e-2F, 1.0F, 1e4F}) {
    Adam adam({.epsilon = 1e-12}, 1);
    std::vector<float> parameter = {0.0F};
    adam.Step(parameter, std::vector<float>{gradient}, 0.25);
    EXPECT_NEAR(parameter[0], -0.25, 1e-4);
  }
}

TEST(GlobalNormTest, IsEuclideanAndShowsNotANumber) {
  EXPECT_DOUBLE_EQ(GlobalNorm(std::vector<float>{3.0F, 4.0F}), 5.0);
  EXPECT_EQ(GlobalNorm({}), 0.0);
  EXPECT_TRUE(std::isnan(GlobalNorm(std::vector<float>{1.0F, NAN})));
  EXPECT_GT(GlobalNorm(std::vector<float>{3e38F, 3e38F}), 4e38);
}

}  // namespace
}  // namespace tetrion
