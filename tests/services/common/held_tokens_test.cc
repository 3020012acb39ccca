#include "services/common/held_tokens.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/core/philox.h"

namespace tetrion {
namespace {

wire::GrantedRange Range(std::uint64_t first, std::uint32_t attempt = 0) {
  return {.first_id = first, .attempt = attempt, .max_steps = 50};
}

TEST(HeldTokensTest, GrantedRangeBecomesPlayableTokens) {
  HeldTokens held;
  held.Add(Range(512, 3));
  EXPECT_EQ(held.held(), 256U);
  std::vector<Token> tokens;
  held.TakeFromPool(2, tokens);
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0].id, 512U);
  EXPECT_EQ(tokens[0].attempt, 3U);
  EXPECT_EQ(tokens[0].max_steps, 50U);
  EXPECT_EQ(held.pool_size(), 254U);
  EXPECT_TRUE(held.Holds(512, 3));
  EXPECT_FALSE(held.Holds(512, 2));
  EXPECT_FALSE(held.Holds(511, 3));
}

TEST(HeldTokensTest, DoneTokensOfARangeGrantedAgainAreNotPlayed) {
  wire::GrantedRange range = Range(0, 1);
  range.done.assign(wire::kRangeBitmapBytes, 0xFF);
  range.done[1] = 0xFE;  // token 8 is left
  HeldTokens held;
  held.Add(range);
  EXPECT_EQ(held.held(), 1U);
  EXPECT_TRUE(held.Holds(8, 1));
  EXPECT_FALSE(held.Holds(7, 1));
}

TEST(HeldTokensTest, RepeatedGrantChangesNothing) {
  HeldTokens held;
  held.Add(Range(0));
  held.Add(Range(0));
  EXPECT_EQ(held.held(), 256U);
  EXPECT_EQ(held.pool_size(), 256U);
}

TEST(HeldTokensTest, SettledTokensLeaveTheListAndEmptyRangesGo) {
  HeldTokens held;
  held.Add(Range(256));
  for (std::uint64_t id = 256; id < 511; ++id) held.Settle(id, 0);
  held.Settle(300, 0);   // twice
  held.Settle(9999, 0);  // never held
  EXPECT_EQ(held.held(), 1U);
  const auto list = held.ListHeld().ranges;
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].held[31], 0x80);
  held.Settle(511, 0);
  EXPECT_TRUE(held.ListHeld().ranges.empty());
}

TEST(HeldTokensTest, AnswerOnTokensThatWereGrantedAgainSettlesNone) {
  HeldTokens held;
  held.Add(Range(0));
  wire::GrantedRange again = Range(0);
  again.attempt += 1;
  held.Add(again);
  held.Settle(3, Range(0).attempt);
  EXPECT_TRUE(held.Holds(3, again.attempt));
  EXPECT_EQ(held.held(), 256U);
  held.Settle(3, again.attempt);
  EXPECT_FALSE(held.Holds(3, again.attempt));
}

TEST(HeldTokensTest, GroupsTokensByRangeForGivingBack) {
  const std::vector<Token> tokens = {{.id = 3, .attempt = 1}, {.id = 600}, {.id = 0, .attempt = 1}};
  const auto groups = HeldTokens::Group(tokens);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].first_id, 0U);
  EXPECT_EQ(groups[0].attempt, 1U);
  EXPECT_EQ(groups[0].held[0], 0b1001);
  EXPECT_EQ(groups[1].first_id, 512U);
  EXPECT_EQ(groups[1].held[11], 1U);  // 600 - 512 = 88 = 11 * 8
}

TEST(HeldTokensTest, LongListIsCutAndSaysWhereAndNothingIsDropped) {
  HeldTokens held;
  constexpr std::uint64_t kRanges = wire::kMaxHeldRanges + 5;
  for (std::uint64_t r = 0; r < kRanges; ++r) held.Add(Range(r * 256));
  const HeldTokens::Listed listed = held.ListHeld();
  EXPECT_EQ(listed.ranges.size(), wire::kMaxHeldRanges);
  EXPECT_EQ(listed.below, wire::kMaxHeldRanges * 256);
  EXPECT_EQ(held.held(), kRanges * 256);
  EXPECT_EQ(held.pool_size(), kRanges * 256);
}

TEST(HeldTokensTest, ShortListIsComplete) {
  HeldTokens held;
  held.Add(Range(512));
  EXPECT_EQ(held.ListHeld().below, ~std::uint64_t{0});
}

TEST(HeldTokensTest, RangeGrantedAgainReplacesTheOldAttempt) {
  HeldTokens held;
  held.Add(Range(0));
  std::vector<Token> taken;
  held.TakeFromPool(10, taken);
  wire::GrantedRange again = Range(0);
  again.attempt = taken[0].attempt + 1;
  held.Add(again);
  EXPECT_EQ(held.held(), 256U);
  EXPECT_EQ(held.pool_size(), 256U);
  EXPECT_FALSE(held.Holds(3, taken[0].attempt));
  EXPECT_TRUE(held.Holds(3, again.attempt));
  held.Add(Range(0));  // the old grant, late
  EXPECT_TRUE(held.Holds(3, again.attempt));
}

// Whatever comes in whatever order, the count equals the set of tokens held.
TEST(HeldTokensTest, AgreesWithAPlainSetUnderRandomOperations) {
  HeldTokens held;
  std::set<std::uint64_t> model;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const PhiloxBlock draw = PhiloxDraw(1, i, 0, PhiloxPurpose::kSampler);
    const std::uint64_t first = BoundedDraw(draw.word[1], 8) * 256;
    if (draw.word[0] % 50 == 0) {
      const auto low = model.lower_bound(first);
      if (low == model.end() || *low >= first + 256) {
        for (std::uint64_t id = first; id < first + 256; ++id) model.insert(id);
      }
      held.Add(Range(first));
    } else {
      const std::uint64_t id = first + BoundedDraw(draw.word[2], 256);
      held.Settle(id, 0);
      model.erase(id);
    }
    ASSERT_EQ(held.held(), model.size());
  }
}

}  // namespace
}  // namespace tetrion
