#include "lib/core/clock.h"

#include <gtest/gtest.h>
#include <time.h>

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

// Leases and bells of other processes are compared with it.
TEST(ClockTest, MonotonicClockIsTheOneThatProcessesShare) {
  const auto read_ns = [] {
    timespec time{};
    EXPECT_EQ(clock_gettime(CLOCK_MONOTONIC, &time), 0);
    return time.tv_sec * kNanosPerSecond + time.tv_nsec;
  };
  const std::int64_t before_ns = read_ns();
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  const std::int64_t after_ns = read_ns();
  EXPECT_GE(now_ns, before_ns);
  EXPECT_LE(now_ns, after_ns);
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
