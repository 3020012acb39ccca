#include "services/coordinator/control_context.h"

#include <gtest/gtest.h>

#include <vector>

namespace tetrion::coordinator {
namespace {

std::vector<std::uint64_t> Taken(ReplyQueue& queue, std::uint64_t committed) {
  std::vector<std::uint64_t> sessions;
  queue.TakeCommitted(committed, [&](const auto& reply) { sessions.push_back(reply.session); });
  return sessions;
}

TEST(ReplyQueueTest, RepliesWaitForTheirTicketInOrder) {
  ReplyQueue queue;
  EXPECT_TRUE(queue.Add({.ticket = 3, .session = 1}));
  EXPECT_TRUE(queue.Add({.ticket = 5, .session = 2}));
  EXPECT_TRUE(queue.Add({.ticket = 4, .session = 3}));  // goes behind the newest
  EXPECT_TRUE(Taken(queue, 2).empty());
  EXPECT_EQ(Taken(queue, 4), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(Taken(queue, 5), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_TRUE(queue.empty());
}

TEST(ReplyQueueTest, FullQueueTakesNoMoreAndLosesNothing) {
  ReplyQueue queue;
  for (std::size_t i = 0; i < ReplyQueue::kMaxReplies; ++i) {
    ASSERT_TRUE(queue.Add({.ticket = 1, .session = i}));
  }
  EXPECT_FALSE(queue.Add({.ticket = 1}));
  EXPECT_EQ(Taken(queue, 1).size(), ReplyQueue::kMaxReplies);
  EXPECT_TRUE(queue.Add({.ticket = 2}));
}

}  // namespace
}  // namespace tetrion::coordinator
