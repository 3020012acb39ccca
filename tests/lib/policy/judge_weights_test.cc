#include "lib/policy/judge_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tetrion {
namespace {

TEST(JudgeWeightsTest, SizeAndEveryNumberCount) {
  std::vector<float> values = {1.0F, -2.0F, 0.0F};
  const auto judge = [&](std::size_t bytes) {
    return JudgeWeights(std::as_bytes(std::span(values)), bytes);
  };
  EXPECT_EQ(judge(12), LoadResult::kLoaded);
  EXPECT_EQ(judge(8), LoadResult::kWrongSize);
  EXPECT_EQ(judge(16), LoadResult::kWrongSize);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (float& value : values) {
      const float before = value;
      value = bad;
      EXPECT_EQ(judge(12), LoadResult::kNotFinite);
      value = before;
    }
  }
  EXPECT_EQ(JudgeWeights({}, 0), LoadResult::kLoaded);
}

TEST(TakeWeightsTest, OnlyABlobThatMayReplaceThemReplacesParameters) {
  const std::vector<float> fresh = {3.0F, 4.0F}, bad = {3.0F, NAN};
  std::vector<float> parameters = {1.0F, 2.0F};
  EXPECT_EQ(TakeWeights(std::as_bytes(std::span(bad)), parameters), LoadResult::kNotFinite);
  EXPECT_EQ(TakeWeights(std::as_bytes(std::span(fresh).first(1)), parameters),
            LoadResult::kWrongSize);
  EXPECT_EQ(parameters, (std::vector<float>{1.0F, 2.0F}));
  EXPECT_EQ(TakeWeights(std::as_bytes(std::span(fresh)), parameters), LoadResult::kLoaded);
  EXPECT_EQ(parameters, fresh);
}

}  // namespace
}  // namespace tetrion
