#include "lib/policy/uniform_choice.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tetrion {
namespace {

TEST(UniformChoiceTest, MaskOfAllHasABitForEveryAction) {
  EXPECT_EQ(MaskOfAll(1), 1U);
  EXPECT_EQ(MaskOfAll(40), (std::uint64_t{1} << 40) - 1);
  EXPECT_EQ(MaskOfAll(64), ~std::uint64_t{0});
  EXPECT_EQ(MaskOfAll(100), ~std::uint64_t{0});
}

TEST(UniformChoiceTest, TheDrawCountsThroughTheBitsSet) {
  constexpr std::uint64_t kMask = 1ULL << 0 | 1ULL << 17 | 1ULL << 39 | 1ULL << 63;
  constexpr std::uint32_t kQuarter = 1U << 30;
  const std::int32_t expected[] = {0, 17, 39, 63};
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const std::uint32_t word : {i * kQuarter, i * kQuarter + kQuarter - 1}) {
      const UniformChoice choice = UniformOfMask(kMask, word);
      EXPECT_EQ(choice.action, expected[i]) << word;
      EXPECT_EQ(choice.log_prob, -std::log(4.0F));
    }
  }
}

TEST(UniformChoiceTest, WithoutALegalActionItIsActionZeroForCertain) {
  const UniformChoice choice = UniformOfMask(0, 0xFFFFFFFFU);
  EXPECT_EQ(choice.action, 0);
  EXPECT_EQ(choice.log_prob, 0.0F);
}

TEST(UniformChoiceTest, AllActionsNeedNoMask) {
  EXPECT_EQ(UniformOfAll(1000, 0).action, 0);
  EXPECT_EQ(UniformOfAll(1000, 0xFFFFFFFFU).action, 999);
  EXPECT_EQ(UniformOfAll(1000, 5).log_prob, -std::log(1000.0F));
}

}  // namespace
}  // namespace tetrion
