#include "lib/core/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace tetrion {
namespace {

void ExpectBlock(const PhiloxBlock& block, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                 std::uint32_t d) {
  EXPECT_EQ(block.word[0], a);
  EXPECT_EQ(block.word[1], b);
  EXPECT_EQ(block.word[2], c);
  EXPECT_EQ(block.word[3], d);
}

// The known answers of the Random123 distribution.
TEST(PhiloxTest, MatchesKnownAnswers) {
  ExpectBlock(Philox4x32({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const std::uint32_t ones = 0xffffffff;
  ExpectBlock(Philox4x32({{ones, ones, ones, ones}}, ones, ones), 0x408f276d, 0x41c83b0e,
              0xa20bc7c6, 0x6d5451fd);
  ExpectBlock(
      Philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
      0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(PhiloxTest, DrawDependsOnEveryPartOfItsCounter) {
  std::set<std::uint32_t> first_words;
  first_words.insert(PhiloxDraw(1, 2, 3, PhiloxPurpose::kPieces).word[0]);
  first_words.insert(PhiloxDraw(1ULL << 32, 2, 3, PhiloxPurpose::kPieces).word[0]);
  first_words.insert(PhiloxDraw(1, 2ULL << 32, 3, PhiloxPurpose::kPieces).word[0]);
  first_words.insert(PhiloxDraw(1, 2, 4, PhiloxPurpose::kPieces).word[0]);
  first_words.insert(PhiloxDraw(1, 2, 3, PhiloxPurpose::kActions).word[0]);
  EXPECT_EQ(first_words.size(), 5U);
}

TEST(PhiloxTest, BoundedDrawCoversItsRangeAndStaysInside) {
  EXPECT_EQ(BoundedDraw(0, 7), 0U);
  EXPECT_EQ(BoundedDraw(0xffffffffU, 7), 6U);
  EXPECT_EQ(BoundedDraw(0xffffffffU, 1), 0U);
}

}  // namespace
}  // namespace tetrion
