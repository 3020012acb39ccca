#include "lib/wire/channel_ends.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion::wire {
namespace {

constexpr int kWaitMs = 5000;
constexpr ChannelPolicy kPolicy = {.most_frame_bytes = 1024, .reconnect_most_ms = 200};
const Router::Config kServer = {.what = "the socket of a test",
                                .bind_like = "--test tcp://127.0.0.1:0",
                                .send_high_water_mark = 2,
                                .backlog = 4};

Router MakeRouter(const std::string& endpoint) {
  return Router(endpoint, {}, kPolicy, kServer);
}

Dealer::Config ClientOf(const std::string& endpoint) {
  return {.endpoint = endpoint,
          .whom = "the server",
          .looks_like = "an address looks like tcp://127.0.0.1:1",
          .send_high_water_mark = 2};
}

std::vector<std::byte> Bytes(std::size_t count) {
  return std::vector<std::byte>(count, std::byte{7});
}

TEST(ChannelEndsTest, BothFramesOfAMessageTravelEitherWayAndAreCounted) {
  Router router("tcp://127.0.0.1:0", {}, kPolicy, kServer);
  Dealer dealer(kPolicy, ClientOf(router.Endpoint()), MonotonicClock::Get());
  LinkStats of_client, of_server;
  const std::vector<std::byte> envelope = Bytes(10), payload = Bytes(100);
  ASSERT_EQ(dealer.Send({envelope, payload}, of_client), SendStatus::kOk);
  EXPECT_EQ(of_client.bytes_out, 110U);
  ASSERT_TRUE(PollSocket(router.socket(), kWaitMs, -1).socket);
  Frame id, first, second;
  ASSERT_TRUE(id.Receive(router.socket()) && first.Receive(router.socket()) &&
              second.Receive(router.socket()));
  EXPECT_EQ(first.size(), 10U);
  EXPECT_EQ(second.size(), 100U);
  const PeerId peer(reinterpret_cast<const char*>(id.data()), id.size());
  ASSERT_EQ(router.Send(peer, {envelope, std::nullopt}, of_server), SendStatus::kOk);
  Frame answer;
  ASSERT_TRUE(dealer.Receive(answer, kWaitMs));
  EXPECT_FALSE(answer.More());
  EXPECT_EQ(of_server.messages_out, 1U);
  EXPECT_EQ(of_server.bytes_out, 10U);
}

TEST(ChannelEndsTest, MessagesThatCannotLeaveAreTold) {
  Router router("tcp://127.0.0.1:0", {}, kPolicy, kServer);
  LinkStats stats;
  EXPECT_EQ(router.Send("nobody", {Bytes(1), std::nullopt}, stats), SendStatus::kNoPeer);
  EXPECT_EQ(stats.dropped_out, 1U);
  Dealer lonely(kPolicy, ClientOf("ipc:///tmp/tetrion-of-no-server"), MonotonicClock::Get());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(lonely.Send({Bytes(1), Bytes(1)}, stats), SendStatus::kOk) << i;
  }
  EXPECT_EQ(lonely.Send({Bytes(1), Bytes(1)}, stats), SendStatus::kFull);
  EXPECT_EQ(stats.dropped_out, 2U);
  Frame none;
  EXPECT_FALSE(lonely.Receive(none, 0));
}

TEST(ChannelEndsTest, RefusedAddressesNameThemAndTheOption) {
  Router router("tcp://127.0.0.1:0", {}, kPolicy, kServer);
  const std::string taken = router.Endpoint();
  try {
    (void)MakeRouter(taken);
    FAIL() << "two servers at one address";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_EQ(std::string(error.what()),
              "cannot bind the socket of a test to '" + taken +
                  "': Address already in use; another process listens there: stop it, or choose a "
                  "free port with --test tcp://127.0.0.1:0");
  }
  try {
    const Dealer dealer(kPolicy, ClientOf("nonsense"), MonotonicClock::Get());
    FAIL() << "no such address";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("the server at 'nonsense'"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("an address looks like"), std::string::npos);
  }
}

TEST(ChannelEndsTest, ReopeningWaitsUnlessSomethingWasHeard) {
  FakeClock clock;
  const Router first("tcp://127.0.0.1:0", {}, kPolicy, kServer);
  const Router second("tcp://127.0.0.1:0", {}, kPolicy, kServer);
  Dealer dealer(kPolicy, ClientOf(first.Endpoint()), clock);
  LinkStats stats;
  EXPECT_TRUE(dealer.Reopen(second.Endpoint(), "", stats));
  EXPECT_EQ(dealer.endpoint(), second.Endpoint());
  EXPECT_FALSE(dealer.Reopen(first.Endpoint(), "", stats)) << "too soon";
  EXPECT_EQ(dealer.endpoint(), second.Endpoint());
  dealer.Heard();
  EXPECT_TRUE(dealer.Reopen(first.Endpoint(), "", stats));
  EXPECT_EQ(stats.reconnects, 2U);
}

// As for want of files. What ends after that still asks the client for its last words.
TEST(ChannelEndsTest, ClientThatCouldNotBeOpenedAnewSendsAndHearsNothing) {
  const Router router = MakeRouter("tcp://127.0.0.1:0");
  Dealer::Config config = ClientOf(router.Endpoint());
  config.context = std::make_shared<SocketContext>(SocketContext::Config{});
  FakeClock clock;
  Dealer dealer(kPolicy, config, clock);
  LinkStats stats;
  ASSERT_EQ(zmq_ctx_shutdown(config.context->handle()), 0);  // it gives no socket any more
  for (int i = 0; i < 2; ++i) {
    clock.AdvanceMs(10'000);
    try {
      (void)dealer.Reopen(router.Endpoint(), "", stats);
      FAIL() << "a context that has ended gave a socket";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain) << error.what();
    }
    EXPECT_EQ(dealer.Send({Bytes(10), std::nullopt}, stats), SendStatus::kFull);
    Frame frame;
    EXPECT_FALSE(dealer.Receive(frame, 1));
    EXPECT_EQ(dealer.HandshakeProblem(), "");
  }
  EXPECT_EQ(stats.reconnects, 0U);
  EXPECT_EQ(stats.dropped_out, 2U);
}

}  // namespace
}  // namespace tetrion::wire
