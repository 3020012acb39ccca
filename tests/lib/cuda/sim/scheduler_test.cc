#include "lib/cuda/sim/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace tetrion::cuda::sim {
namespace {

// Of some thousand that were opened.
constexpr std::uint64_t kStreams[] = {0, 2000, 5000};

TEST(SchedulerTest, ForwardAndReverseDrainOneStreamAfterTheOther) {
  Scheduler forward({Order::kForward, 0}), reverse({Order::kReverse, 0});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(forward.PickStream(kStreams, kStreams), 0U);
    EXPECT_EQ(reverse.PickStream(kStreams, kStreams), 2U);
    EXPECT_EQ(forward.PickParts(100), 1U);
    EXPECT_EQ(forward.PickQuerySteps(), 1U) << "polling goes on";
  }
  EXPECT_EQ(forward.BlockOrder(3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(reverse.BlockOrder(3), (std::vector<std::uint32_t>{2, 1, 0}));
}

TEST(SchedulerTest, ASeedRepeatsItself) {
  Scheduler one({Order::kRandom, 5}), same({Order::kRandom, 5}), other({Order::kRandom, 6});
  int differ = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t pick = one.PickStream(kStreams, kStreams);
    ASSERT_EQ(same.PickStream(kStreams, kStreams), pick);
    if (other.PickStream(kStreams, kStreams) != pick) ++differ;
  }
  EXPECT_GT(differ, 100);
}

// The longest run of picks without one of the streams.
std::size_t LongestAbsence(Scheduler& scheduler, std::size_t stream) {
  std::size_t absence = 0, longest = 0;
  for (int i = 0; i < 5000; ++i) {
    absence = scheduler.PickStream(kStreams, kStreams) == stream ? 0 : absence + 1;
    longest = std::max(longest, absence);
  }
  return longest;
}

TEST(SchedulerTest, EveryStreamStarvesForAWhileAndNoneForEver) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (std::size_t stream = 0; stream < 3; ++stream) {
      Scheduler scheduler({Order::kRandom, seed});
      const std::size_t longest = LongestAbsence(scheduler, stream);
      EXPECT_GT(longest, 40U);
      EXPECT_LT(longest, 2000U);
    }
  }
}

TEST(SchedulerTest, AStarvedStreamRunsWhenItIsAlone) {
  Scheduler scheduler({Order::kRandom, 1});
  const std::uint64_t alone[] = {2000};
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(scheduler.PickStream(alone, kStreams), 0U);
}

TEST(SchedulerTest, RandomOrdersArePermutationsAndPartsAreFew) {
  Scheduler scheduler({Order::kRandom, 9});
  std::set<std::vector<std::uint32_t>> orders;
  std::set<std::uint32_t> parts;
  for (int i = 0; i < 100; ++i) {
    std::vector<std::uint32_t> order = scheduler.BlockOrder(3);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2}));
    parts.insert(scheduler.PickParts(3));
    ASSERT_EQ(scheduler.PickParts(1), 1U);
  }
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_EQ(parts, (std::set<std::uint32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace tetrion::cuda::sim
