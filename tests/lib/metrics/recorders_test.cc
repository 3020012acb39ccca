#include "lib/metrics/recorders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <thread>
#include <vector>

namespace tetrion {
namespace {

constexpr std::array kBounds = {1.0, 2.0, 4.0};

TEST(RecordersTest, NeighboursShareNoCacheLine) {
  const std::vector<HotCounter> counters(2);
  const auto distance =
      reinterpret_cast<const char*>(&counters[1]) - reinterpret_cast<const char*>(&counters[0]);
  EXPECT_GE(distance, static_cast<std::ptrdiff_t>(kCacheLinePairBytes));
}

TEST(RecordersTest, BoundsAreInclusiveAboveAndTheRestFallsIntoTheLastBucket) {
  HotHistogram histogram(kBounds);
  for (const double value : {-5.0, 1.0, 1.0000001, 2.0, 4.0, 4.1, 1e300}) histogram.Observe(value);
  EXPECT_EQ(histogram.Count(0), 2U);
  EXPECT_EQ(histogram.Count(1), 2U);
  EXPECT_EQ(histogram.Count(2), 1U);
  EXPECT_EQ(histogram.Count(3), 2U);
}

TEST(RecordersTest, NotANumberIsNotCounted) {
  HotHistogram histogram(kBounds);
  histogram.Observe(std::numeric_limits<double>::quiet_NaN());
  histogram.ObserveMany(1.0, 0);
  for (std::size_t i = 0; i <= kBounds.size(); ++i) EXPECT_EQ(histogram.Count(i), 0U);
  EXPECT_EQ(histogram.Sum(), 0.0);
}

TEST(RecordersTest, ManyEqualObservationsCountAsSuch) {
  HotHistogram histogram(kBounds);
  histogram.ObserveMany(1.5, 1000);
  EXPECT_EQ(histogram.Count(1), 1000U);
  EXPECT_EQ(histogram.Sum(), 1500.0);
}

TEST(RecordersTest, BatchCountsAsItsValuesOneByOne) {
  HotHistogram batch(kBounds), plain(kBounds);
  std::vector<float> values = {NAN, -INFINITY, 1e30F, INFINITY};
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i % 11) * 0.5F);
  for (int round = 0; round < 2; ++round) {
    batch.ObserveEach(std::span<const float>(values), [](float v) { return double{v}; });
    for (const float value : values) plain.Observe(value);
  }
  for (std::size_t i = 0; i <= kBounds.size(); ++i) EXPECT_EQ(batch.Count(i), plain.Count(i));
  EXPECT_TRUE(std::isnan(batch.Sum()) && std::isnan(plain.Sum()));
  values.resize(1);
  values.insert(values.end(), {0.1F, 3.0F, -2.5F});
  HotHistogram sum(kBounds);
  sum.ObserveEach(std::span<const float>(values), [](float v) { return double{v}; });
  EXPECT_DOUBLE_EQ(sum.Sum(), double{0.1F} + 0.5);
}

// A reader beside the writer sees a counter that only grows and, after the join, the exact sum.
// Under TSan this also shows that the accesses are no race.
TEST(RecordersTest, ReaderSeesTheOneWriterGrowToTheExactSum) {
  constexpr int kAdds = 200'000;
  HotCounter counter;
  HotHistogram histogram(kBounds);
  std::thread writer([&] {
    for (int i = 0; i < kAdds; ++i) {
      counter.Increment();
      histogram.Observe(3.0);
    }
  });
  double last = 0;
  while (last < kAdds) {
    const double now = counter.Value();
    ASSERT_GE(now, last);
    last = now;
  }
  writer.join();
  EXPECT_EQ(counter.Value(), kAdds);
  EXPECT_EQ(histogram.Count(2), static_cast<std::uint64_t>(kAdds));
}

TEST(RecordersTest, RaisedCounterShowsTheTotal) {
  HotCounter counter;
  counter.RaiseTo(5);
  counter.RaiseTo(5);
  EXPECT_EQ(counter.Value(), 5);
  counter.RaiseTo(7.5);
  EXPECT_EQ(counter.Value(), 7.5);
}

TEST(RecordersDeathTest, BoundsMustAscend) {
  static constexpr std::array kBad = {1.0, 1.0};
  EXPECT_DEATH(HotHistogram{kBad}, "ascend");
}

}  // namespace
}  // namespace tetrion
