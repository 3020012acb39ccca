#include "lib/collect/credit_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "lib/core/clock.h"
#include "tests/support/asleep.h"

namespace tetrion {
namespace {

std::vector<Token> Tokens(std::uint64_t first, std::uint64_t count) {
  std::vector<Token> out;
  for (std::uint64_t i = 0; i < count; ++i) out.push_back({.id = first + i});
  return out;
}

TEST(CreditQueueTest, HandsTokensOutInOrderAndThenTimesOut) {
  CreditQueue queue;
  queue.Push(Tokens(5, 2));
  Token token;
  ASSERT_EQ(queue.Take(token, 0), TakeResult::kToken);
  EXPECT_EQ(token.id, 5U);
  ASSERT_EQ(queue.Take(token, 0), TakeResult::kToken);
  EXPECT_EQ(token.id, 6U);
  EXPECT_EQ(queue.Take(token, 0), TakeResult::kTimeout);
  EXPECT_EQ(queue.Take(token, kNanosPerMilli), TakeResult::kTimeout);
}

TEST(CreditQueueTest, PushWakesAWaitingWorker) {
  CreditQueue queue;
  Token token;
  const testing::Sleeper worker([&] { (void)queue.Take(token, 2 * testing::kPatienceNs); });
  ASSERT_TRUE(worker.FallsAsleep());
  queue.Push(Tokens(9, 1));
  ASSERT_TRUE(worker.IsDone());
  EXPECT_EQ(token.id, 9U);
}

TEST(CreditQueueTest, DrainAndFenceWakeAWaitingWorker) {
  for (const bool drains : {true, false}) {
    CreditQueue queue;
    TakeResult result = TakeResult::kTimeout;
    const testing::Sleeper worker([&] {
      Token token;
      result = queue.Take(token, 2 * testing::kPatienceNs);
    });
    ASSERT_TRUE(worker.FallsAsleep());
    if (drains) {
      EXPECT_TRUE(queue.Drain().empty());
    } else {
      queue.Fence();
    }
    ASSERT_TRUE(worker.IsDone()) << (drains ? "drain" : "fence");
    EXPECT_EQ(result, drains ? TakeResult::kDrain : TakeResult::kFenced);
  }
}

TEST(CreditQueueTest, DrainReturnsWhatWasNotTakenAndRefusesMore) {
  CreditQueue queue;
  queue.Push(Tokens(0, 3));
  Token token;
  ASSERT_EQ(queue.Take(token, 0), TakeResult::kToken);
  EXPECT_EQ(queue.Drain().size(), 2U);
  EXPECT_EQ(queue.Take(token, 0), TakeResult::kDrain);
  queue.Push(Tokens(10, 1));
  EXPECT_EQ(queue.size(), 0U);
  queue.Fence();
  EXPECT_EQ(queue.State(), TakeResult::kDrain);  // a drain is for good
}

TEST(CreditQueueTest, FenceDropsTokensAndHoldsNewOnesBackUntilAccepted) {
  CreditQueue queue;
  queue.Push(Tokens(0, 3));
  queue.Fence();
  Token token;
  EXPECT_EQ(queue.Take(token, 0), TakeResult::kFenced);
  queue.Push(Tokens(100, 1));  // of the new session
  EXPECT_EQ(queue.Take(token, 0), TakeResult::kFenced);
  queue.AcceptFence();
  ASSERT_EQ(queue.Take(token, 0), TakeResult::kToken);
  EXPECT_EQ(token.id, 100U);
}

}  // namespace
}  // namespace tetrion
