#include "lib/wire/backoff.h"

#include <gtest/gtest.h>

namespace tetrion::wire {
namespace {

TEST(BackoffTest, FirstAttemptIsAllowedAtOnceAndTheNextOnlyAfterADelay) {
  FakeClock clock;
  Backoff backoff(clock, {});
  EXPECT_TRUE(backoff.TryNow());
  EXPECT_FALSE(backoff.TryNow());
  clock.AdvanceNs(backoff.LeftNs() - 1);
  EXPECT_FALSE(backoff.TryNow());
  clock.AdvanceNs(1);
  EXPECT_TRUE(backoff.TryNow());
}

TEST(BackoffTest, DelaysGrowToTheLimitWithinTheJitter) {
  FakeClock clock;
  const Backoff::Config config;
  Backoff backoff(clock, config);
  std::int64_t base_ns = config.first_ns;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(backoff.TryNow());
    EXPECT_GE(backoff.LeftNs(), base_ns * 3 / 4 - 1);
    EXPECT_LE(backoff.LeftNs(), base_ns * 5 / 4 + 1);
    base_ns = std::min(base_ns + base_ns / 2, config.max_ns);
    clock.AdvanceNs(backoff.LeftNs());
  }
  EXPECT_EQ(base_ns, config.max_ns);
}

TEST(BackoffTest, SuccessStartsAnew) {
  FakeClock clock;
  Backoff backoff(clock, {});
  for (int i = 0; i < 10; ++i) {
    clock.AdvanceNs(backoff.LeftNs());
    ASSERT_TRUE(backoff.TryNow());
  }
  backoff.Reset();
  EXPECT_TRUE(backoff.TryNow());
  EXPECT_LE(backoff.LeftNs(), 125 * kNanosPerMilli);
}

TEST(BackoffTest, PeersDrawDifferentDelays) {
  FakeClock clock;
  Backoff one(clock, {.seed = 1}), other(clock, {.seed = 2});
  ASSERT_TRUE(one.TryNow());
  ASSERT_TRUE(other.TryNow());
  EXPECT_NE(one.LeftNs(), other.LeftNs());
}

}  // namespace
}  // namespace tetrion::wire
