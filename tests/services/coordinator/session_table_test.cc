#include "services/coordinator/session_table.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

constexpr std::int64_t kLeaseNs = 10 * kNanosPerSecond;

class SessionTableTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  SessionTable table_{clock_, kLeaseNs, 5};
};

TEST_F(SessionTableTest, NumbersGrowAndAreNeverReused) {
  EXPECT_EQ(table_.Open({}).number, 5U);
  EXPECT_EQ(table_.Open({}).number, 6U);
  table_.Close(6);
  EXPECT_EQ(table_.Open({}).number, 7U);
  EXPECT_EQ(table_.Find(6), nullptr);
}

TEST_F(SessionTableTest, SessionExpiresWhenItsLeaseIsOverAndNotBefore) {
  const std::uint64_t number = table_.Open({}).number;
  clock_.AdvanceNs(kLeaseNs - 1);
  EXPECT_TRUE(table_.Expired().empty());
  clock_.AdvanceNs(1);
  EXPECT_EQ(table_.Expired(), std::vector<std::uint64_t>{number});
}

TEST_F(SessionTableTest, HeartbeatGivesAFullLease) {
  Session& session = table_.Open({});
  clock_.AdvanceNs(kLeaseNs - 1);
  table_.Renew(session);
  clock_.AdvanceNs(kLeaseNs - 1);
  EXPECT_TRUE(table_.Expired().empty());
  EXPECT_EQ(table_.OldestSilenceNs(), kLeaseNs - 1);
}

TEST_F(SessionTableTest, FullLeasesSaveWhatAStallOfOurOwnLetExpire) {
  table_.Open({});
  clock_.AdvanceNs(3 * kLeaseNs);
  table_.GiveFullLeases();
  EXPECT_TRUE(table_.Expired().empty());
  clock_.AdvanceNs(kLeaseNs);
  EXPECT_EQ(table_.Expired().size(), 1U);
}

TEST_F(SessionTableTest, RepeatedRegistrationIsFoundByProcessOrConnection) {
  table_.Open({.role = wire::Role::kActor, .nonce = 7, .peer = "p"});
  table_.Open({.role = wire::Role::kActor, .peer = "q"});
  EXPECT_EQ(table_.FindSame(wire::Role::kActor, "other", 7)->number, 5U);
  EXPECT_EQ(table_.FindSame(wire::Role::kActor, "q", 0)->number, 6U);
  EXPECT_EQ(table_.FindSame(wire::Role::kActor, "p", 0), nullptr);
  EXPECT_EQ(table_.FindSame(wire::Role::kLearner, "q", 0), nullptr);
  EXPECT_EQ(table_.FindSame(wire::Role::kActor, "q", 8), nullptr);
}

TEST_F(SessionTableTest, StepsOfAnEndedSessionAreRemembered) {
  table_.Open({.env_steps = 70});
  table_.Close(5);
  std::uint64_t steps = 0;
  EXPECT_TRUE(table_.EndedSteps(5, &steps));
  EXPECT_EQ(steps, 70U);
  EXPECT_FALSE(table_.EndedSteps(4, &steps));
}

}  // namespace
}  // namespace tetrion
