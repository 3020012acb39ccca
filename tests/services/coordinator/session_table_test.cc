#include "services/coordinator/session_table.h"

#include <gtest/gtest.h>

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kLeaseNs = 10 * kNanosPerSecond;

class SessionTableTest : public ::testing::Test {
 protected:
  Session& Open(std::uint64_t process, wire::Role role = wire::Role::kActor) {
    return table_.Open({.role = role, .process = process});
  }

  FakeClock clock_;
  SessionTable table_{clock_, kLeaseNs, 5, 77};
};

TEST_F(SessionTableTest, NumbersGrowAndAreNeverReused) {
  const std::uint64_t first = Open(1).number, second = Open(2).number;
  EXPECT_EQ(SessionTable::SequenceOf(first), 5U);
  EXPECT_EQ(SessionTable::SequenceOf(second), 6U);
  table_.Close(second);
  EXPECT_EQ(SessionTable::SequenceOf(table_.next_number()), 7U);
  EXPECT_EQ(SessionTable::SequenceOf(Open(3).number), 7U);
  EXPECT_EQ(table_.Find(second), nullptr);
}

TEST_F(SessionTableTest, NumbersCannotBeGuessedFromOthers) {
  SessionTable other(clock_, kLeaseNs, 5, 78);
  EXPECT_NE(other.next_number(), table_.next_number());
  EXPECT_NE(table_.next_number() & 0xffffffff, 0U);
  EXPECT_LT(table_.next_number(), std::uint64_t{1} << 63);  // it fits the store's columns
}

TEST_F(SessionTableTest, SessionExpiresWhenItsLeaseIsOverAndNotBefore) {
  const std::uint64_t number = Open(1).number;
  clock_.AdvanceNs(kLeaseNs - 1);
  EXPECT_TRUE(table_.Expired().empty());
  clock_.AdvanceNs(1);
  EXPECT_EQ(table_.Expired(), std::vector<std::uint64_t>{number});
}

TEST_F(SessionTableTest, RenewedSessionExpiresAfterTheSilentOnes) {
  Session& renewed = Open(1);
  const std::uint64_t silent = Open(2).number;
  clock_.AdvanceNs(kLeaseNs - 1);
  table_.Renew(renewed);
  clock_.AdvanceNs(1);
  EXPECT_EQ(table_.Expired(), std::vector<std::uint64_t>{silent});
  clock_.AdvanceNs(kLeaseNs - 2);
  EXPECT_EQ(table_.OldestSilenceNs(), 2 * kLeaseNs - 2);
  clock_.AdvanceNs(1);
  EXPECT_EQ(table_.Expired(), (std::vector<std::uint64_t>{silent, renewed.number}));
}

TEST_F(SessionTableTest, FullLeasesSaveWhatAStallOfOurOwnLetExpire) {
  Open(1);
  clock_.AdvanceNs(3 * kLeaseNs);
  table_.GiveFullLeases();
  EXPECT_TRUE(table_.Expired().empty());
  clock_.AdvanceNs(kLeaseNs);
  EXPECT_EQ(table_.Expired().size(), 1U);
}

TEST_F(SessionTableTest, RepeatedRegistrationIsFoundByItsProcess) {
  const std::uint64_t number = Open(7).number;
  EXPECT_EQ(table_.FindProcess(7)->number, number);
  EXPECT_EQ(table_.FindProcess(8), nullptr);
  table_.Close(number);
  EXPECT_EQ(table_.FindProcess(7), nullptr);
}

TEST_F(SessionTableTest, LearnerIsKnownApart) {
  Open(1);
  EXPECT_EQ(table_.Learner(), nullptr);
  const std::uint64_t number = Open(2, wire::Role::kLearner).number;
  EXPECT_EQ(table_.Learner()->number, number);
  EXPECT_EQ(table_.Count(wire::Role::kActor), 1U);
  EXPECT_EQ(table_.Count(wire::Role::kLearner), 1U);
  table_.Close(number);
  EXPECT_EQ(table_.Learner(), nullptr);
  EXPECT_EQ(table_.Count(wire::Role::kLearner), 0U);
}

}  // namespace
}  // namespace tetrion::coordinator
