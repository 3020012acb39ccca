#include "services/coordinator/control_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// A peer that opens and closes sessions all the time must not fill the log.
TEST_F(CoordinatorFixture, SoManyLinesOnSessionsInTenSecondsAreLoggedAndTheRestCounted) {
  ControlConfig config = config_;
  config.bind = "ipc://" + folder_.path() + "/other.sock";
  ControlContext context(config, stored_, *store_agent_, *metrics_, clock_);
  const auto logged = [&](int times) {
    ::testing::internal::CaptureStdout();
    for (int i = 0; i < times; ++i) context.LogSession("it began");
    return ::testing::internal::GetCapturedStdout();
  };
  clock_.AdvanceMs(10'000);
  std::string lines = logged(130);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 100);
  EXPECT_EQ(logged(1), "");
  clock_.AdvanceMs(10'000);
  lines = logged(1);
  EXPECT_THAT(lines, HasSubstr("31 lines on sessions were left out here\n"));
  EXPECT_THAT(lines, HasSubstr("it began\n"));
  clock_.AdvanceMs(10'000);
  EXPECT_THAT(logged(1), Not(HasSubstr("left out")));
}

// A flood of sessions may be the last that the log hears of any.
TEST_F(CoordinatorFixture, SessionLinesLeftOutAreCountedInTimeAndAtTheEndWithoutAnotherSession) {
  const auto client = Connect();
  const auto ask = [&](const wire::Message& message) -> wire::Message {
    EXPECT_EQ(client->Send(message), wire::SendStatus::kOk);
    for (int i = 0; i < 10 * kTries; ++i) {  // no time passes
      const wire::ReceiveResult got = client->Receive(1);
      if (got.status == wire::ReceiveStatus::kMessage) return got.message;
      control_->DoWork();
      RunStore();
    }
    return wire::Refused{};
  };
  const auto logged = [&](const auto& afterwards) {
    ::testing::internal::CaptureStdout();
    for (int i = 0; i < 60; ++i) {
      const wire::Message registered = ask(wire::Register{.name = "actor-0"});
      const auto* begun = std::get_if<wire::Registered>(&registered);
      if (begun != nullptr) ask(wire::Goodbye{.session = begun->session});
    }
    afterwards();
    return ::testing::internal::GetCapturedStdout();
  };
  EXPECT_THAT(logged([&] { Pass(20'000); }), HasSubstr("] 20 lines on sessions were left out"));
  EXPECT_THAT(logged([&] { control_->OnClose(); }),
              HasSubstr("] 20 lines on sessions were left out"));
}

// Of two answers on the same tokens the earlier must come first: the second may grant again what
// the first one takes.
TEST_F(CoordinatorFixture, AnswerThatIsCommittedWaitsBehindThoseThatWaited) {
  ControlConfig config = config_;
  config.bind = "ipc://" + folder_.path() + "/other.sock";
  ControlContext context(config, stored_, *store_agent_, *metrics_, clock_);
  wire::ControlClient client({.endpoint = context.server.endpoint(),
                              .identity = {.run_id = stored_.run_id, .process = 77}});
  ASSERT_EQ(client.Send(wire::GrantRequest{1, 1, 1}), wire::SendStatus::kOk);
  std::optional<wire::ControlServer::Received> asked;
  for (int i = 0; i < kTries && !asked; ++i) {
    context.server.Poll(100);
    asked = context.server.Receive();
  }
  ASSERT_TRUE(asked.has_value());
  const std::uint64_t ticket = context.book.Persist({}, Durability::kPromise);
  context.ReplyAfter(ticket, asked->peer, 0, wire::AbandonAck{.session = 1, .request = 1});
  RunStore();
  ASSERT_LE(ticket, store_agent_->committed());
  context.ReplyAfter(ticket, asked->peer, 0, wire::AbandonAck{.session = 1, .request = 2});
  EXPECT_EQ(context.SendCommitted(), 2);
  for (std::uint64_t request : {1, 2}) {
    const wire::ReceiveResult got = client.Receive(10'000);
    ASSERT_EQ(got.status, wire::ReceiveStatus::kMessage);
    EXPECT_EQ(std::get<wire::AbandonAck>(got.message).request, request);
  }
}

}  // namespace
}  // namespace tetrion::coordinator
