#include "lib/rl/dreamer/laprop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "tests/support/golden.h"

namespace tetrion {
namespace {

const ParameterLayout kOne = {{.name = "p", .shape = {2}, .offset = 0, .size = 2}};
const ParameterLayout kTwo = {{.name = "p", .shape = {2}, .offset = 0, .size = 2},
                              {.name = "q", .shape = {1}, .offset = 2, .size = 1}};
const std::vector<std::vector<float>> kGradients = {{30, 40}, {1, -2}, {0, 0.5F}};

TEST(LaProp, NormalisesClippedGradientsBeforeTheMomentum) {
  const std::vector<std::vector<double>> want = {
      {1, 1}, {0.9185308, -0.0810832}, {0.5795895, 0.1199271}};
  LaProp optimiser({.learning_rate = 4e-5, .warmup_updates = 0}, kOne);
  std::vector<float> p = {3, 4};
  std::vector<double> sum = {3, 4};
  for (int n = 1; n <= 3; ++n) {
    const LaPropStep step = optimiser.Step(p, kGradients[static_cast<std::size_t>(n - 1)]);
    EXPECT_EQ(step.problem, "");
    for (std::size_t i = 0; i < 2; ++i) {
      const double direction = optimiser.mean()[i] / (1.0 - std::pow(0.9, n));
      EXPECT_NEAR(direction, want[static_cast<std::size_t>(n - 1)][i], 2e-6) << n;
      sum[i] -= 4e-5 * direction;
      EXPECT_NEAR(p[i], sum[i], 1e-6);
    }
    if (n == 1) {
      EXPECT_DOUBLE_EQ(step.grad_norm, 50.0) << "before clipping";
      EXPECT_NEAR(optimiser.square()[0], 0.001 * 0.9 * 0.9, 1e-9) << "clipped to 0.3 of 5";
    }
  }
}

TEST(LaProp, TheRateRisesFromZero) {
  LaProp optimiser({.learning_rate = 0.1, .warmup_updates = 2}, kOne);
  std::vector<float> p = {3, 4};
  EXPECT_EQ(optimiser.LearningRate(), 0.0);
  EXPECT_EQ(optimiser.Step(p, kGradients[0]).problem, "");
  EXPECT_EQ(p, (std::vector<float>{3, 4}));
  EXPECT_DOUBLE_EQ(optimiser.LearningRate(), 0.05);
  EXPECT_EQ(optimiser.Step(p, kGradients[0]).problem, "");
  EXPECT_DOUBLE_EQ(optimiser.LearningRate(), 0.1);
  EXPECT_NEAR(p[0], 3 - 0.05, 1e-5);
}

TEST(LaProp, TakesTheConstantsThatItIsGiven) {
  constexpr double kBeta1 = 0.5, kBeta2 = 0.75, kEpsilon = 0.125;
  LaProp optimiser({.learning_rate = 1.0,
                    .warmup_updates = 0,
                    .agc = 0,
                    .beta1 = kBeta1,
                    .beta2 = kBeta2,
                    .epsilon = kEpsilon},
                   kOne);
  std::vector<float> p = {3, 4};
  double square = 0, mean = 0, want = 3;
  for (int n = 1; n <= 3; ++n) {
    const std::vector<float>& gradient = kGradients[static_cast<std::size_t>(n - 1)];
    EXPECT_EQ(optimiser.Step(p, gradient).problem, "");
    square = kBeta2 * square + (1 - kBeta2) * gradient[0] * gradient[0];
    mean = kBeta1 * mean +
           (1 - kBeta1) * gradient[0] / (std::sqrt(square / (1 - std::pow(kBeta2, n))) + kEpsilon);
    want -= mean / (1 - std::pow(kBeta1, n));
    EXPECT_NEAR(p[0], want, 1e-5) << n;
  }
  LaProp clipped({.warmup_updates = 0, .agc = 0.5, .agc_least_norm = 10, .beta2 = 0}, kOne);
  EXPECT_EQ(clipped.Step(p, kGradients[0]).problem, "");
  EXPECT_NEAR(clipped.square()[0], 3.0 * 3.0, 1e-4) << "(30, 40) to half of the least norm";
}

TEST(LaProp, PiecesAreClippedEachByTheirOwnNorm) {
  LaProp optimiser({.learning_rate = 1.0, .warmup_updates = 0}, kTwo);
  std::vector<float> p = {3, 4, 0};  // a piece that is 0 may still move: its norm counts as 0.001
  const std::vector<float> g = {0.3F, 0.4F, 1.0F};
  EXPECT_EQ(optimiser.Step(p, g).problem, "");
  EXPECT_FLOAT_EQ(optimiser.square()[0], 0.001F * 0.3F * 0.3F) << "0.5 is below 0.3 * 5";
  EXPECT_NEAR(optimiser.square()[2], 0.001 * 3e-4 * 3e-4, 1e-15);
}

TEST(LaProp, WhatIsNotFiniteIsNamedAndChangesNothing) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  LaProp optimiser({.learning_rate = 1.0, .warmup_updates = 0}, kTwo);
  std::vector<float> p = {3, 4, 5};
  for (float bad : {kInfinity, std::nanf("")}) {
    const LaPropStep step = optimiser.Step(p, std::vector<float>{0.1F, 0.1F, bad});
    EXPECT_EQ(step.problem, "the gradient of q");
  }
  LaProp unclipped({.learning_rate = 1.0, .warmup_updates = 0, .agc = 0}, kTwo);
  EXPECT_EQ(unclipped.Step(p, std::vector<float>{1e30F, 0, 0}).problem, "the gradient of p");
  EXPECT_EQ(p, (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(optimiser.steps(), 0);
  EXPECT_EQ(optimiser.square()[0], 0.0F);
}

TEST(LaProp, AHugeGradientIsClippedToAStep) {
  LaProp optimiser({.learning_rate = 0.1, .warmup_updates = 0}, kTwo);
  std::vector<float> p = {3, 4, 5};
  EXPECT_EQ(optimiser.Step(p, std::vector<float>{1e30F, -1e30F, 0}).problem, "");
  EXPECT_NEAR(p[0], 2.9, 1e-5);
  EXPECT_NEAR(p[1], 4.1, 1e-5);
  EXPECT_EQ(p[2], 5.0F);
}

TEST(LaProp, GradientsWithoutASquareMoveNothingFarWithTheLeastEpsilon) {
  for (float gradient = 1e-25F; gradient < 1e-17F; gradient *= 3) {
    LaProp optimiser({.learning_rate = 0.1, .warmup_updates = 0, .epsilon = 1e-20}, kTwo);
    std::vector<float> p = {3, 4, 5};
    EXPECT_EQ(optimiser.Step(p, std::vector<float>{gradient, 0, 0}).problem, "");
    EXPECT_NEAR(p[0], 3.0, 0.12) << gradient;
  }
}

TEST(LaProp, FiveStepsOfThreePiecesAreTheFormulas) {
  if (!testing::HasGolden("laprop.start")) GTEST_SKIP() << testing::kNoCase;
  const ParameterLayout layout = {{.name = "zero", .shape = {3}, .offset = 0, .size = 3},
                                  {.name = "clipped", .shape = {4}, .offset = 3, .size = 4},
                                  {.name = "free", .shape = {5}, .offset = 7, .size = 5}};
  std::vector<float> p = testing::Golden("laprop.start").data;
  const std::vector<float>& gradients = testing::Golden("laprop.gradients").data;
  const std::vector<float>& want = testing::Golden("laprop.result").data;
  LaProp optimiser({.learning_rate = 0.01, .warmup_updates = 3}, layout);
  for (std::size_t step = 0; step < 5; ++step) {
    const auto gradient = std::span(gradients).subspan(step * p.size(), p.size());
    EXPECT_EQ(optimiser.Step(p, gradient).problem, "");
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double expected = want[step * p.size() + i];
      EXPECT_NEAR(p[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << step << " " << i;
    }
  }
}

}  // namespace
}  // namespace tetrion
