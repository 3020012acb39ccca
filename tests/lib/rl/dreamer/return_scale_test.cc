#include "lib/rl/dreamer/return_scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "tests/support/golden.h"

namespace tetrion {
namespace {

// Their 5th percentile is 0.5, the 95th 9.5.
const std::vector<float> kZeroToTen = {3, 10, 0, 7, 1, 9, 2, 8, 4, 6, 5};

TEST(ReturnScale, APercentileLiesBetweenTwoValuesInProportion) {
  std::vector<float> values = kZeroToTen;
  EXPECT_DOUBLE_EQ(Percentile(values, 0.05), 0.5);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.95), 9.5);
  EXPECT_DOUBLE_EQ(Percentile(values, 0.0), 0.0);
  EXPECT_DOUBLE_EQ(Percentile(values, 1.0), 10.0);
  std::vector<float> one = {4};
  EXPECT_DOUBLE_EQ(Percentile(one, 0.95), 4.0);
}

TEST(ReturnScale, FollowsThePercentilesSlowly) {
  ReturnScale scale(0.01);
  for (int i = 0; i < 3; ++i) scale.Update(kZeroToTen);
  EXPECT_NEAR(scale.range().low, 0.0148505, 1e-6);
  EXPECT_NEAR(scale.range().high, 0.2821595, 1e-6);
  EXPECT_EQ(scale.scale(), 1.0) << "small returns are not blown up";
}

TEST(ReturnScale, IsTheRangeOnceThatIsGreaterThanOne) {
  ReturnScale scale(1.0);
  scale.Update(kZeroToTen);
  EXPECT_DOUBLE_EQ(scale.scale(), 9.0);
  ReturnScale resumed(1.0);
  resumed.set_range(scale.range());
  EXPECT_DOUBLE_EQ(resumed.scale(), 9.0);
}

TEST(ReturnScale, ThreeUpdatesAreTheFormulas) {
  if (!testing::HasGolden("scale.returns")) GTEST_SKIP() << testing::kNoCase;
  const std::vector<float>& returns = testing::Golden("scale.returns").data;
  const std::vector<float>& want = testing::Golden("scale.result").data;
  const std::size_t count = returns.size() / 3;
  ReturnScale scale(0.01);
  for (std::size_t update = 0; update < 3; ++update) {
    scale.Update(std::span(returns).subspan(update * count, count));
    const double got[] = {scale.range().low, scale.range().high, scale.scale()};
    for (std::size_t i = 0; i < 3; ++i) {
      const double expected = want[update * 3 + i];
      EXPECT_NEAR(got[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << update << i;
    }
  }
}

}  // namespace
}  // namespace tetrion
