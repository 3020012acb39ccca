#include "lib/rl/mean_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tetrion {
namespace {

TEST(MeanWeightsTest, SpansAnEighthOfTheStepsAndAtMostWhatWasAskedFor) {
  const std::vector<float> before = {7, 70};
  MeanWeights mean(3, before);
  EXPECT_EQ(mean.values()[0], 7);
  double expected = 7;
  for (std::int64_t step = 1; step <= 100; ++step) {
    const double span = step <= 8 ? 1 : step <= 16 ? 2 : 3;
    const double weight = static_cast<double>(step % 7);
    expected += (weight - expected) / span;
    mean.Add(std::vector<float>{static_cast<float>(weight), static_cast<float>(10 * weight)}, step);
    ASSERT_NEAR(mean.values()[0], expected, 1e-4) << step;
    ASSERT_NEAR(mean.values()[1], 10 * expected, 1e-3) << step;
  }
}

// Of weights that rise by 1 a step the mean lies behind by what it spans.
TEST(MeanWeightsTest, WithoutABoundTheMeanLiesBehindByAShareOfAllSteps) {
  MeanWeights mean(std::uint64_t{1} << 40, std::vector<float>{0});
  for (std::int64_t step = 1; step <= 8000; ++step) {
    mean.Add(std::vector<float>{static_cast<float>(step)}, step);
  }
  EXPECT_NEAR(mean.values()[0], 8000 - 8000 / 9.0, 10);
}

// A share of a millionth of what is left would be lost in the rounding of the mean.
TEST(MeanWeightsTest, OverMillionsOfStepsTheMeanStillFollows) {
  constexpr std::int64_t kSpan = 1'000'000;
  MeanWeights mean(kSpan, std::vector<float>{1.0F});
  const std::vector<float> weights = {1.05F};
  for (std::int64_t step = 8 * kSpan; step < 11 * kSpan; ++step) mean.Add(weights, step);
  EXPECT_NEAR(mean.values()[0], 1.05 - 0.05 * std::exp(-3), 5e-4);
}

TEST(MeanWeightsTest, OverNoStepsThereIsNone) {
  MeanWeights mean(0, std::vector<float>{1, 2});
  mean.Add(std::vector<float>{3, 4}, 1);
  EXPECT_FALSE(mean.is_on());
  EXPECT_TRUE(mean.values().empty());
}

}  // namespace
}  // namespace tetrion
