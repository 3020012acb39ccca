#include "lib/rl/mean_weights.h"

#include <gtest/gtest.h>

#include <vector>

namespace tetrion {
namespace {

TEST(MeanWeightsTest, TheFirstStepsCountEquallyAndLaterOnesFade) {
  const std::vector<float> before = {7, 70};
  MeanWeights mean(4, before);
  EXPECT_EQ(mean.values()[0], 7);
  for (std::int64_t step = 1; step <= 4; ++step) {
    const auto weight = static_cast<float>(step);
    mean.Add(std::vector<float>{weight, 10 * weight}, step);
  }
  EXPECT_FLOAT_EQ(mean.values()[0], 2.5F);  // of 1, 2, 3, 4: what was before has no part
  EXPECT_FLOAT_EQ(mean.values()[1], 25);
  mean.Add(std::vector<float>{6.5F, 65}, 5);
  EXPECT_FLOAT_EQ(mean.values()[0], 2.5F + 4.0F / 4);
  for (std::int64_t step = 6; step < 200; ++step) mean.Add(std::vector<float>{1, 1}, step);
  EXPECT_NEAR(mean.values()[0], 1, 1e-5);
}

TEST(MeanWeightsTest, OverNoStepsThereIsNone) {
  MeanWeights mean(0, std::vector<float>{1, 2});
  mean.Add(std::vector<float>{3, 4}, 1);
  EXPECT_FALSE(mean.is_on());
  EXPECT_TRUE(mean.values().empty());
}

}  // namespace
}  // namespace tetrion
