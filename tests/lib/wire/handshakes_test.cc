#include "lib/wire/handshakes.h"

#include <gtest/gtest.h>
#include <zmq.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

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

  SocketContext context_{SocketContext::Config{}};
  void* const server_;
};

TEST_F(HandshakeMonitorTest, NothingHappenedYieldsNothing) {
  HandshakeMonitor monitor(context_, server_);
  EXPECT_EQ(monitor.Next(), std::nullopt);
}

TEST_F(HandshakeMonitorTest, PlainConnectionsAreAcceptedOnes) {
  HandshakeMonitor monitor(context_, server_);
  ASSERT_EQ(zmq_bind(server_, "ipc://*"), 0);
  char address[256];
  std::size_t bytes = sizeof(address);
  ASSERT_EQ(zmq_getsockopt(server_, ZMQ_LAST_ENDPOINT, address, &bytes), 0);
  void* const client = zmq_socket(context_.handle(), ZMQ_DEALER);
  ASSERT_EQ(zmq_connect(client, address), 0);
  zmq_pollitem_t item = {monitor.handle(), 0, ZMQ_POLLIN, 0};
  ASSERT_EQ(zmq_poll(&item, 1, 20'000), 1);
  EXPECT_EQ(monitor.Next(), Handshake::kAccepted);
  EXPECT_EQ(monitor.Next(), std::nullopt);
  zmq_close(client);
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
