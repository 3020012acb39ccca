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

// After months of updates with a rate that falls: 1 - 2e-8 is 1 as a float.
TEST(AdamTest, WeightDecayBelowAFloatsStepAtOneIsNotLost) {
  constexpr std::size_t kSize = 4096;
  constexpr int kSteps = 2000;
  constexpr double kRate = 1e-6, kDecay = 0.02;
  Adam plain({}, kSize), decayed({.weight_decay = kDecay}, kSize);
  std::vector<float> start(kSize), gradient(kSize);
  for (std::size_t i = 0; i < kSize; ++i) start[i] = std::sin(static_cast<float>(i) * 1.7F);
  std::vector<float> a = start, b = start;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < kSize; ++i) {
      gradient[i] = 1e-3F * std::sin(static_cast<float>(step) * 2.3F + static_cast<float>(i));
    }
    plain.Step(a, gradient, kRate);
    decayed.Step(b, gradient, kRate);
  }
  double along = 0, square = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    along += (static_cast<double>(a[i]) - b[i]) * start[i];
    square += static_cast<double>(start[i]) * start[i];
  }
  const double lost = 1 - std::exp(-kRate * kDecay * kSteps);
  EXPECT_NEAR(along / square, lost, 0.2 * lost);  // rounded away it is 0, rounded up 1.5 times
}

TEST(AdamTest, FirstStepIsTheLearningRateWhateverTheGradient) {
  for (const float gradient : {1e-2F, 1.0F, 1e4F}) {
    Adam adam({.epsilon = 1e-12}, 1);
    std::vector<float> parameter = {0.0F};
    adam.Step(parameter, std::vector<float>{gradient}, 0.25);
    EXPECT_NEAR(parameter[0], -0.25, 1e-4);
  }
}

TEST(AdamTest, GradientWhoseSquareIsBeyondAFloatSpoilsTheStepAfterItsOwn) {
  Adam adam({}, 1);
  std::vector<float> parameter = {1.0F};
  adam.Step(parameter, std::vector<float>{1e20F}, 0.25);
  EXPECT_EQ(parameter[0], 1.0F);
  EXPECT_TRUE(std::isinf(adam.square()[0]));
  adam.Step(parameter, std::vector<float>{1.0F}, 0.25);
  EXPECT_FALSE(std::isfinite(parameter[0]));
}

TEST(GlobalNormTest, IsEuclideanAndShowsNotANumber) {
  EXPECT_DOUBLE_EQ(GlobalNorm(std::vector<float>{3.0F, 4.0F}), 5.0);
  EXPECT_EQ(GlobalNorm({}), 0.0);
  EXPECT_TRUE(std::isnan(GlobalNorm(std::vector<float>{1.0F, NAN})));
  EXPECT_GT(GlobalNorm(std::vector<float>{3e38F, 3e38F}), 4e38);
}

}  // namespace
}  // namespace tetrion
