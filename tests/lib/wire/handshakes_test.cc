#include "lib/wire/handshakes.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/lib/wire/raw_peer_for_test.h"

namespace tetrion::wire {
namespace {

TEST(HandshakeCountsTest, KindsAreCountedApartAndReadFromOtherThreads) {
  HandshakeCounts counts;
  std::thread adder([&] {
    counts.Add(Handshake::kAccepted);
    counts.Add(Handshake::kNoKeys);
    counts.Add(Handshake::kNoKeys);
  });
  adder.join();
  EXPECT_EQ(counts.Totals(), (HandshakeTotals{1, 0, 2, 0, 0}));
}

TEST(HandshakeCountsTest, EveryKindHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kHandshakeKinds; ++i) names.insert(Name(static_cast<Handshake>(i)));
  EXPECT_EQ(names.size(), kHandshakeKinds);
}

class HandshakeMonitorTest : public ::testing::Test {
 protected:
  HandshakeMonitorTest() : server_(zmq_socket(context_.handle(), ZMQ_ROUTER)) {}
  ~HandshakeMonitorTest() override { zmq_close(server_); }

  static void AwaitEvents(const HandshakeMonitor& monitor) {
    zmq_pollitem_t item = {monitor.handle(), 0, ZMQ_POLLIN, 0};
    ASSERT_EQ(zmq_poll(&item, 1, 20'000), 1);
  }
  static EndedHandshake Await(HandshakeMonitor& monitor) {
    std::optional<EndedHandshake> ended;
    while (!(ended = monitor.Next()).has_value() && !testing::Test::HasFatalFailure()) {
      AwaitEvents(monitor);
    }
    return ended.value_or(EndedHandshake{});
  }
  // Binds the server and connects to it; the caller closes the socket.
  int ConnectByHand() const {
    EXPECT_EQ(zmq_bind(server_, "tcp://127.0.0.1:*"), 0);
    char endpoint[256];
    std::size_t bytes = sizeof(endpoint);
    EXPECT_EQ(zmq_getsockopt(server_, ZMQ_LAST_ENDPOINT, endpoint, &bytes), 0);
    return ConnectTo(endpoint);
  }
  // ZMTP's greeting of a peer with another mechanism (rfc.zeromq.org/spec/23).
  static void GreetAnotherWay(int fd) {
    std::string greeting = "\xff" + std::string(8, '\0') + "\x7f\x03" + std::string(53, '\0');
    greeting.replace(12, 5, "PLAIN");
    ASSERT_EQ(send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(greeting.size()));
  }

  SocketContext context_{SocketContext::Config{}};
  void* const server_;
};

TEST_F(HandshakeMonitorTest, NothingHappenedYieldsNothing) {
  HandshakeMonitor monitor(context_, server_);
  EXPECT_FALSE(monitor.Next().has_value());
}

TEST_F(HandshakeMonitorTest, PlainConnectionsAreAcceptedOnes) {
  HandshakeMonitor monitor(context_, server_);
  ASSERT_EQ(zmq_bind(server_, "ipc://*"), 0);
  char address[256];
  std::size_t bytes = sizeof(address);
  ASSERT_EQ(zmq_getsockopt(server_, ZMQ_LAST_ENDPOINT, address, &bytes), 0);
  void* const client = zmq_socket(context_.handle(), ZMQ_DEALER);
  ASSERT_EQ(zmq_connect(client, address), 0);
  EXPECT_EQ(Await(monitor).how, Handshake::kAccepted);
  EXPECT_FALSE(monitor.Next().has_value());
  zmq_close(client);
}

TEST_F(HandshakeMonitorTest, RefusedPeerIsToldByItsAddress) {
  HandshakeMonitor monitor(context_, server_);
  const int fd = ConnectByHand();
  AwaitEvents(monitor);  // the connection begins
  EXPECT_FALSE(monitor.Next().has_value());
  GreetAnotherWay(fd);
  const EndedHandshake ended = Await(monitor);
  EXPECT_EQ(ended.how, Handshake::kNoKeys);
  EXPECT_EQ(ended.peer.find("127.0.0.1 port "), 0U) << ended.peer;
  close(fd);
}

// The descriptor may have been another connection's when the kernel was asked.
TEST_F(HandshakeMonitorTest, PeerThatWasGoneBeforeItWasLookedAtHasNoAddress) {
  HandshakeMonitor monitor(context_, server_);
  const int fd = ConnectByHand();
  GreetAnotherWay(fd);
  char heard[128];
  while (recv(fd, heard, sizeof(heard), 0) > 0) {
  }  // until it hung up: all of its events are in the queue
  close(fd);
  const EndedHandshake ended = Await(monitor);
  EXPECT_EQ(ended.how, Handshake::kNoKeys);
  EXPECT_EQ(ended.peer, "");
}

// Far more events than ZeroMQ's own bound of a queue, none of them read.
TEST_F(HandshakeMonitorTest, EventsThatWaitStopNoConnection) {
  constexpr int kConnections = 2500;
  HandshakeMonitor monitor(context_, server_);
  ASSERT_EQ(zmq_bind(server_, "ipc://*"), 0);
  char address[256];
  std::size_t bytes = sizeof(address);
  ASSERT_EQ(zmq_getsockopt(server_, ZMQ_LAST_ENDPOINT, address, &bytes), 0);
  const int wait_ms = 20'000;
  zmq_setsockopt(server_, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
  for (int i = 0; i < kConnections; ++i) {
    void* const client = zmq_socket(context_.handle(), ZMQ_DEALER);
    ASSERT_EQ(zmq_connect(client, address), 0);
    ASSERT_EQ(zmq_send(client, "x", 1, 0), 1);
    char id[16], body[4];
    ASSERT_GT(zmq_recv(server_, id, sizeof(id), 0), 0) << i;
    ASSERT_EQ(zmq_recv(server_, body, sizeof(body), 0), 1);
    zmq_close(client);
  }
  int seen = 0;
  while (monitor.Next().has_value()) ++seen;
  EXPECT_EQ(seen, kConnections);
}

}  // namespace
}  // namespace tetrion::wire
