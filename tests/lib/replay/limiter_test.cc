#include "lib/replay/limiter.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

// The formula's two bounds, walked along the number line of one counter at a time.
TEST(LimiterTest, UndrawnItemsAllowsWritingBelowItsBoundAndSamplingOfWhatIsThere) {
  const Limiter limiter = Limiter::UndrawnItems(6);
  for (std::int64_t undrawn = 0; undrawn <= 8; ++undrawn) {
    const ItemCounts counts = {.inserted = 100 + undrawn, .drawn = 100, .size = undrawn};
    EXPECT_EQ(limiter.MayInsert(counts), undrawn < 6) << undrawn;
    EXPECT_EQ(limiter.MaySample(counts, 3), undrawn >= 3) << undrawn;
  }
}

TEST(LimiterTest, SamplesPerInsertHoldsReaderAndWriterWithinTheirBounds) {
  // Two draws an item after the first ten; 4 draws ahead, 6 behind.
  const Limiter limiter = Limiter::SamplesPerInsert(2.0, 10, 4.0, 6.0);
  for (std::int64_t drawn = 0; drawn <= 40; ++drawn) {
    const ItemCounts counts = {.inserted = 20, .drawn = drawn, .size = 20};
    EXPECT_EQ(limiter.MaySample(counts, 1), drawn + 1 <= 2 * 10 + 4) << drawn;
    EXPECT_EQ(limiter.MaySample(counts, 4), drawn + 4 <= 2 * 10 + 4) << drawn;
    EXPECT_EQ(limiter.MayInsert(counts), drawn > 2 * 10 - 6) << drawn;
  }
  for (std::int64_t inserted = 10; inserted <= 40; ++inserted) {
    const ItemCounts counts = {.inserted = inserted, .drawn = 20, .size = 10};
    EXPECT_EQ(limiter.MaySample(counts, 1), 2 * (inserted - 10) - 21 >= -4) << inserted;
    EXPECT_EQ(limiter.MayInsert(counts), 2 * (inserted - 10) - 20 < 6) << inserted;
  }
}

TEST(LimiterTest, BelowTheMinimumWritingIsFreeAndNothingIsSampled) {
  const Limiter limiter = Limiter::SamplesPerInsert(1.0, 5, 100.0, 1.0);
  for (std::int64_t size = 0; size <= 8; ++size) {
    const ItemCounts counts = {.inserted = 1000, .drawn = 950, .size = size};
    EXPECT_EQ(limiter.MaySample(counts, 1), size >= 5) << size;
    EXPECT_EQ(limiter.MayInsert(counts), size < 5) << size;
  }
}

TEST(LimiterTest, UnlimitedHoldsNobodyOnceAnItemIsThere) {
  const Limiter limiter = Limiter::Unlimited();
  EXPECT_FALSE(limiter.MaySample({}, 1));
  for (const std::int64_t drawn : {std::int64_t{0}, std::int64_t{1} << 40}) {
    EXPECT_TRUE(limiter.MayInsert({.inserted = 1, .drawn = drawn, .size = 1}));
    EXPECT_TRUE(limiter.MaySample({.inserted = 1, .drawn = drawn, .size = 1}, 1 << 20));
  }
}

TEST(LimiterDeathTest, BoundsInTheWrongOrderAreABug) {
  EXPECT_DEATH(Limiter({.min_diff = 1, .max_diff = 1}), "below");
  EXPECT_DEATH(Limiter({.samples_per_insert = 0, .max_diff = 1}), "positive");
}

}  // namespace
}  // namespace tetrion
