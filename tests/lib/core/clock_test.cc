#include "lib/core/clock.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

TEST(ClockTest, MonotonicClockNeverGoesBack) {
  std::int64_t last_ns = MonotonicClock::Get().NowNs();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t now_ns = MonotonicClock::Get().NowNs();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
}

TEST(ClockTest, DeadlinePassesExactlyWhenItsTimeHasCome) {
  FakeClock clock;
  const Deadline deadline(clock, 10 * kNanosPerMilli);
  EXPECT_EQ(deadline.LeftNs(), 10 * kNanosPerMilli);
  clock.AdvanceNs(10 * kNanosPerMilli - 1);
  EXPECT_FALSE(deadline.Passed());
  clock.AdvanceNs(1);
  EXPECT_TRUE(deadline.Passed());
  clock.AdvanceMs(5);
  EXPECT_EQ(deadline.LeftNs(), 0);
}

}  // namespace
}  // namespace tetrion
