#include "lib/nn/categorical.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tetrion {
namespace {

TEST(CategoricalTest, DrawsFollowTheSoftmaxAndNeverTakeAMaskedAction) {
  const float logits[] = {0.0F, kMaskedLogit, 1.0F, -1.0F, kMaskedLogit};
  const float normaliser = LogNormaliser(logits, 5);
  EXPECT_NEAR(normaliser, std::log(1 + std::exp(1.0) + std::exp(-1.0)), 1e-6);
  int counts[5] = {};
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[SampleCategorical(logits, 5, normaliser, (i + 0.5) / kDraws)];
  }
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[4], 0);
  for (int a : {0, 2, 3}) EXPECT_NEAR(counts[a], kDraws * std::exp(logits[a] - normaliser), 3);
}

TEST(CategoricalTest, EndsOfTheUnitIntervalGiveTheFirstAndLastLegalAction) {
  const float logits[] = {kMaskedLogit, 0.3F, 0.1F, kMaskedLogit};
  const float normaliser = LogNormaliser(logits, 4);
  EXPECT_EQ(SampleCategorical(logits, 4, normaliser, 0.0), 1);
  EXPECT_EQ(SampleCategorical(logits, 4, normaliser, std::nextafter(1.0, 0.0)), 2);
  EXPECT_EQ(MostProbable(logits, 4), 1);
}

TEST(CategoricalTest, DrawsFromProbabilitiesAreThoseFromTheirLogits) {
  const float logits[] = {0.0F, kMaskedLogit, 1.0F, -1.0F, kMaskedLogit};
  const float normaliser = LogNormaliser(logits, 5);
  float probability[5];
  for (int a = 0; a < 5; ++a) probability[a] = std::exp(logits[a] - normaliser);
  constexpr int kDraws = 1000;
  for (int i = 0; i < kDraws; ++i) {
    const double uniform = (i + 0.5) / kDraws;
    EXPECT_EQ(SampleProbability(probability, 5, uniform),
              SampleCategorical(logits, 5, normaliser, uniform));
  }
  EXPECT_EQ(SampleProbability(probability, 5, 0.0), 0);
  EXPECT_EQ(SampleProbability(probability, 5, std::nextafter(1.0, 0.0)), 3);
  const float less_than_one[] = {0.0F, 0.25F, 0.5F, 0.0F};
  EXPECT_EQ(SampleProbability(less_than_one, 4, 0.0), 1);
  EXPECT_EQ(SampleProbability(less_than_one, 4, 0.9), 2) << "never one of probability 0";
}

TEST(CategoricalTest, MostProbableTakesTheLowestOfEquals) {
  const float logits[] = {0.5F, 2.0F, 2.0F};
  EXPECT_EQ(MostProbable(logits, 3), 1);
}

TEST(CategoricalTest, LeastEntropyIsThatOfACertainChoiceInTheMixture) {
  for (const int count : {2, 3, 40}) {
    for (const double share : {0.01, 0.25}) {
      double entropy = 0;
      for (int a = 0; a < count; ++a) {
        const double p = (a == 0 ? 1 - share : 0.0) + share / count;
        entropy -= p * std::log(p);
      }
      EXPECT_NEAR(LeastEntropy(share, count), entropy, 1e-12) << count << " " << share;
    }
  }
  EXPECT_EQ(LeastEntropy(0.0, 5), 0.0);
  EXPECT_EQ(LeastEntropy(0.5, 1), 0.0);
}

TEST(CategoricalTest, HugeLogitsStayFinite) {
  const float logits[] = {3e4F, -3e4F};
  EXPECT_EQ(LogNormaliser(logits, 2), 3e4F);
}

// Logits of two states side by side, as a kernel reads them with a thread a state.
struct EverySecond {
  const float* first;
  float operator[](int a) const { return first[2 * a]; }
};

TEST(CategoricalTest, LogitsMayLieInAnotherWay) {
  const float logits[] = {0.3F, 0.5F, -1.0F}, spread[] = {0.3F, 9, 0.5F, 9, -1.0F, 9};
  const float normaliser = LogNormaliser(logits, 3);
  EXPECT_EQ(LogNormaliser(EverySecond{spread}, 3), normaliser);
  EXPECT_EQ(MostProbable(EverySecond{spread}, 3), 1);
  for (const double uniform : {0.0, 0.3, 0.5, 0.8, 0.95}) {
    EXPECT_EQ(SampleCategorical(EverySecond{spread}, 3, normaliser, uniform),
              SampleCategorical(logits, 3, normaliser, uniform));
  }
}

}  // namespace
}  // namespace tetrion
