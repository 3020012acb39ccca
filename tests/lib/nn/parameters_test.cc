#include "lib/nn/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tetrion {
namespace {

ParameterLayout TwoLayers() {
  ParameterLayout layout;
  AddLinear(layout, "trunk.1", 3, 2);
  AddParameter(layout, "trunk.1.norm.scale", {3});
  AddLinear(layout, "policy.head", 2, 3);
  return layout;
}

TEST(ParametersTest, PiecesFollowEachOtherWithoutGaps) {
  const ParameterLayout layout = TwoLayers();
  ASSERT_EQ(layout.size(), 5U);
  std::size_t offset = 0;
  for (const ParameterInfo& info : layout) {
    EXPECT_EQ(info.offset, offset) << info.name;
    offset += info.size;
  }
  EXPECT_EQ(FloatsOf(layout), offset);
  EXPECT_EQ(offset, 6U + 3 + 3 + 6 + 2);
  EXPECT_EQ(FloatsOf({}), 0U);
  EXPECT_EQ(ParameterOf(layout, "policy.head.bias").offset, 18U);
}

TEST(ParametersTest, InitialWeightsAreOrthogonalAndTheHeadsSmall) {
  const ParameterLayout layout = TwoLayers();
  std::vector<float> values(FloatsOf(layout), -1.0F);
  FillInitial(layout, 7, values);
  const auto length = [&](std::size_t first, std::size_t count, std::size_t step) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += std::pow(static_cast<double>(values[first + i * step]), 2);
    }
    return std::sqrt(sum);
  };
  EXPECT_NEAR(length(0, 3, 2), std::sqrt(2.0), 1e-6) << "a column of trunk.1";
  EXPECT_NEAR(length(12, 3, 1), 0.01, 1e-8) << "a row of the policy's head";
  for (const std::size_t bias : {6U, 7U, 8U, 18U, 19U}) EXPECT_EQ(values[bias], 0.0F);
  for (const std::size_t scale : {9U, 10U, 11U}) EXPECT_EQ(values[scale], 1.0F);
}

TEST(ParametersTest, InitialValuesFollowFromTheSeed) {
  const ParameterLayout layout = TwoLayers();
  std::vector<float> a(FloatsOf(layout)), b(a), other(a);
  FillInitial(layout, 7, a);
  FillInitial(layout, 7, b);
  FillInitial(layout, 8, other);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, other);
}

TEST(ParametersDeathTest, UnknownNamesAreABug) {
  EXPECT_DEATH((void)ParameterOf(TwoLayers(), "trunk.3.bias"), "no such parameter");
}

}  // namespace
}  // namespace tetrion
