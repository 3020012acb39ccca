#include "services/coordinator/process_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace tetrion::coordinator {
namespace {

class ProcessTableTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  ProcessTable table_{clock_, 0};
};

TEST_F(ProcessTableTest, OnlyWhatIsNewOfACountIsAdded) {
  table_.Open(1, false);
  EXPECT_EQ(table_.Tell(1, 70), 70U);
  EXPECT_EQ(table_.Tell(1, 70), 0U);
  EXPECT_EQ(table_.Tell(1, 50), 0U);  // late
  table_.Leave(1);
  table_.Open(1, true);
  EXPECT_EQ(table_.Tell(1, 100), 30U);
  EXPECT_EQ(table_.Tell(2, 100), 0U);  // not known
}

TEST_F(ProcessTableTest, ReturningProcessThatIsNotKnownCountsFromItsFirstWord) {
  table_.Open(1, true);
  EXPECT_EQ(table_.Tell(1, 5000), 0U);
  EXPECT_EQ(table_.Tell(1, 5001), 1U);
  EXPECT_EQ(table_.Find(1)->steps_base, 5000U);
}

TEST_F(ProcessTableTest, ForgottenProcessesKeepTheirStepsInTheSum) {
  table_.Open(1, false);
  table_.Tell(1, 70);
  table_.Open(2, true);
  table_.Tell(2, 500);
  table_.Tell(2, 510);
  table_.Forget(1);
  table_.Forget(2);
  EXPECT_EQ(table_.steps_forgotten(), 80U);
  EXPECT_EQ(table_.TakeForgotten(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(table_.TakeForgotten().empty());
  EXPECT_TRUE(table_.TakeDirty().empty());
}

TEST_F(ProcessTableTest, OfThoseGoneTheNewestAreKept) {
  for (std::uint64_t i = 1; i <= ProcessTable::kMaxGone + 10; ++i) {
    table_.Open(i, false);
    table_.Tell(i, 3);
    table_.Leave(i);
  }
  EXPECT_EQ(table_.size(), ProcessTable::kMaxGone);
  EXPECT_EQ(table_.Find(10), nullptr);
  EXPECT_NE(table_.Find(11), nullptr);
  EXPECT_EQ(table_.steps_forgotten(), 30U);
}

TEST_F(ProcessTableTest, ProcessThatIsBackIsNotForgottenWithTheGone) {
  table_.Open(1, false);
  table_.Leave(1);
  table_.Open(1, true);
  for (std::uint64_t i = 2; i <= ProcessTable::kMaxGone + 10; ++i) {
    table_.Open(i, false);
    table_.Leave(i);
  }
  EXPECT_NE(table_.Find(1), nullptr);
}

TEST_F(ProcessTableTest, SessionsOfOneProcessAreBoundedWithinAnHour) {
  EXPECT_TRUE(table_.MayOpen(1));
  for (int i = 0; i < ProcessTable::kMaxSessions; ++i) {
    ASSERT_TRUE(table_.MayOpen(1));
    table_.Open(1, i > 0);
    table_.Leave(1);
  }
  EXPECT_FALSE(table_.MayOpen(1));
  clock_.AdvanceNs(ProcessTable::kSessionsWindowNs + 1);
  for (int i = 0; i < ProcessTable::kMaxSessions; ++i) {
    ASSERT_TRUE(table_.MayOpen(1)) << "the next hour's";
    table_.Open(1, true);
  }
  EXPECT_FALSE(table_.MayOpen(1));
}

TEST_F(ProcessTableTest, EveryChangeReachesTheStoreOnce) {
  table_.Open(1, false);
  table_.Tell(1, 5);
  table_.AddGranted(1, 256);
  const std::vector<Process> changed = table_.TakeDirty();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0].env_steps, 5U);
  EXPECT_EQ(changed[0].tokens_granted, 256U);
  EXPECT_TRUE(table_.TakeDirty().empty());
}

TEST_F(ProcessTableTest, BanHoldsWhileTheProcessIsKnown) {
  table_.Open(1, false);
  table_.Ban(1, "its ring");
  table_.Leave(1);
  EXPECT_EQ(table_.BanOf(1), "its ring");
  EXPECT_EQ(table_.BanOf(2), "");
}

TEST(ClaimedStepsTest, ProcessTakesAtMostTheStepsOfTheTokensItWasGranted) {
  const Process process = {.number = 1, .steps_base = 1000, .tokens_granted = 256};
  EXPECT_EQ(ImpossibleSteps(1000 + 256 * 100, process, 100), "");
  EXPECT_EQ(ImpossibleSteps(1000 + 256 * 100 + 1, process, 100),
            "told 25601 steps, 256 tokens of at most 100 steps were granted");
  EXPECT_EQ(ImpossibleSteps(5, process, 100), "");  // late: below its base
}

TEST(ClaimedStepsTest, ProcessWhoseBaseIsNotKnownMayTellAnyCount) {
  const Process process = {.number = 1, .base_known = false};
  EXPECT_EQ(ImpossibleSteps(std::numeric_limits<std::uint64_t>::max(), process, 100), "");
}

TEST(ClaimedStepsTest, MostStepsThatARunCanGrantDoNotOverflow) {
  const Process process = {.number = 1, .tokens_granted = std::uint64_t{1} << 40};
  EXPECT_EQ(ImpossibleSteps(std::uint64_t{1} << 62, process, 1 << 30), "");
}

}  // namespace
}  // namespace tetrion::coordinator
