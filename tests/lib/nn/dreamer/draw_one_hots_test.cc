#include "lib/nn/dreamer/draw_one_hots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace tetrion {
namespace {

TEST(DrawOneHots, AWordsShareOfTheUnitIntervalDecides) {
  const float probs[] = {0.25F, 0.5F, 0.0F, 0.25F};
  EXPECT_EQ(DrawClass(probs, 4, 0), 0U);
  EXPECT_EQ(DrawClass(probs, 4, 0x3FFFFF00U), 0U);
  EXPECT_EQ(DrawClass(probs, 4, 0x40000000U), 1U);
  EXPECT_EQ(DrawClass(probs, 4, 0xBFFFFF00U), 1U);
  EXPECT_EQ(DrawClass(probs, 4, 0xC0000000U), 3U);
  EXPECT_EQ(DrawClass(probs, 4, 0xFFFFFFFFU), 3U);
}

TEST(DrawOneHots, ProbabilitiesThatAreNoNumbersDrawTheLastClass) {
  const float probs[] = {std::nanf(""), 0.5F, 0.5F};
  EXPECT_EQ(DrawClass(probs, 3, 0), 2U);
}

TEST(DrawOneHots, WordsDifferBySeedUpdateAndBlock) {
  const std::uint32_t word = UpdateWords(1, 2, 3).word[0];
  EXPECT_EQ(UpdateWords(1, 2, 3).word[0], word);
  EXPECT_NE(UpdateWords(2, 2, 3).word[0], word);
  EXPECT_NE(UpdateWords(1, 3, 3).word[0], word);
  EXPECT_NE(UpdateWords(1, 2, 4).word[0], word);
}

}  // namespace
}  // namespace tetrion
