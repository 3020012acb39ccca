#include "lib/wire/socket_context.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/wire/socket.h"
#include "tests/support/no_open_files.h"

namespace tetrion::wire {
namespace {

constexpr int kWaitMs = 5000;

std::optional<ControlServer::Received> WaitFor(ControlServer& server) {
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (!deadline.Passed()) {
    if (auto received = server.Receive()) return received;
    server.Poll(50);
  }
  return std::nullopt;
}

auto ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(SocketContextTest, TwoClientsOfOneContextTalkToOneServerAsTwoPeers) {
  ControlServer server("tcp://127.0.0.1:0");
  const auto context = std::make_shared<SocketContext>(SocketContext::Config{});
  ControlClient first({.endpoint = server.endpoint(), .context = context});
  ControlClient second({.endpoint = server.endpoint(), .context = context});
  ASSERT_EQ(first.Send(Goodbye{1, 0}), SendStatus::kOk);
  ASSERT_EQ(second.Send(Goodbye{2, 0}), SendStatus::kOk);
  std::set<PeerId> peers;
  for (int i = 0; i < 2; ++i) {
    const auto received = WaitFor(server);
    ASSERT_TRUE(received.has_value());
    peers.insert(received->peer);
    const auto goodbye = std::get<Goodbye>(Decode(received->bytes).message);
    ASSERT_EQ(server.Send(received->peer, GoodbyeAck{goodbye.session}), SendStatus::kOk);
  }
  EXPECT_EQ(peers.size(), 2U);
  EXPECT_EQ(std::get<GoodbyeAck>(first.Receive(kWaitMs).message).session, 1U);
  EXPECT_EQ(std::get<GoodbyeAck>(second.Receive(kWaitMs).message).session, 2U);
}

TEST(SocketContextTest, ClientsOfOneContextNeedNoThreadsOfTheirOwn) {
  const auto context = std::make_shared<SocketContext>(SocketContext::Config{.max_sockets = 64});
  std::vector<std::unique_ptr<ControlClient>> clients;
  const auto open = [&] {
    clients.push_back(std::make_unique<ControlClient>(
        ControlClient::Config{.endpoint = "tcp://127.0.0.1:9", .context = context}));
  };
  open();
  const auto threads = ThreadsOfThisProcess();
  while (clients.size() < 32) open();
  EXPECT_EQ(ThreadsOfThisProcess(), threads);
}

TEST(SocketContextTest, ClientKeepsItsContextAndReopensInIt) {
  ControlServer server("tcp://127.0.0.1:0");
  auto context = std::make_shared<SocketContext>(SocketContext::Config{});
  const std::weak_ptr<SocketContext> watched = context;
  auto client = std::make_unique<ControlClient>(
      ControlClient::Config{.endpoint = server.endpoint(), .context = std::move(context)});
  ASSERT_TRUE(client->Reopen());
  ASSERT_EQ(client->Send(Goodbye{1, 0}), SendStatus::kOk);
  EXPECT_TRUE(WaitFor(server).has_value());
  EXPECT_FALSE(watched.expired());
  client.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(SocketContextTest, SocketBeyondTheMostIsAnErrorThatNamesTheLimit) {
  const auto context = std::make_shared<SocketContext>(SocketContext::Config{.max_sockets = 1});
  const ControlClient::Config config{.endpoint = "tcp://127.0.0.1:9", .context = context};
  ControlClient first(config);
  try {
    ControlClient second(config);
    FAIL() << "one socket too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find("limit"), std::string::npos) << error.what();
  }
}

TEST(SocketContextTest, MoreSocketsThanZeroMqCanHaveAndNoThreadAreRefused) {
  EXPECT_THROW(SocketContext({.max_sockets = 1 << 20}), Error);
  EXPECT_THROW(SocketContext({.io_threads = 0}), Error);
}

TEST(SocketContextTest, WantOfOpenFilesIsForNow) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const testing::NoOpenFiles none;
  try {
    const SocketContext context(SocketContext::Config{});
    FAIL() << "a context needs files";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain) << error.what();
  }
}

}  // namespace
}  // namespace tetrion::wire
