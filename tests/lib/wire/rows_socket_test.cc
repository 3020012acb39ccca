#include "lib/wire/rows_socket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/core/error.h"
#include "tests/lib/wire/key_folder_for_test.h"
#include "tests/lib/wire/raw_peer_for_test.h"

namespace tetrion::wire {
namespace {

constexpr int kWaitMs = 5000;
const RowsServer::Config kAnyPort = {.endpoint = "tcp://127.0.0.1:0", .run_id = 5};

RowsReceived WaitFor(RowsServer& server) {
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (!deadline.Passed()) {
    RowsReceived received = server.Receive();
    if (received.status != ReceiveStatus::kTimeout) return received;
    server.Poll(50);
  }
  return {};
}

TEST(RowsSocketTest, RowsAndAcknowledgementTravel) {
  RowsServer server(kAnyPort);
  RowsClient client({.endpoint = server.endpoint(), .identity = {.run_id = 5, .process = 7}});
  const std::vector<std::byte> rows(1'000'000, std::byte{3});
  ASSERT_EQ(client.Send(RowBatch{1, 2, 4, RowsPacking::kNone}, rows), SendStatus::kOk);
  RowsReceived received = WaitFor(server);
  ASSERT_EQ(received.status, ReceiveStatus::kMessage);
  EXPECT_EQ(std::get<RowBatch>(received.message).first, 2U);
  EXPECT_EQ(received.sender, (Identity{.run_id = 5, .process = 7}));
  EXPECT_TRUE(std::ranges::equal(received.payload.bytes(), rows));
  const Payload kept = std::move(received.payload);
  EXPECT_EQ(kept.bytes().size(), rows.size());
  ASSERT_EQ(server.Send(received.peer, RowsAck{{{1, 6, 2, false}}, 0}), SendStatus::kOk);
  const RowsReceived answer = client.Receive(kWaitMs);
  ASSERT_EQ(answer.status, ReceiveStatus::kMessage);
  EXPECT_EQ(std::get<RowsAck>(answer.message).streams[0].next, 6U);
  EXPECT_EQ(answer.sender.run_id, 5U);
  EXPECT_TRUE(answer.payload.bytes().empty());
  EXPECT_EQ(server.stats().bytes_in, client.stats().bytes_out);
  EXPECT_EQ(client.stats().bytes_in, server.stats().bytes_out);
}

TEST(RowsSocketTest, RowsTravelByIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no IPv6";
  RowsServer server({.endpoint = "tcp://[::1]:0"});
  RowsClient client({.endpoint = server.endpoint()});
  ASSERT_EQ(client.Send(RowBatch{1, 2, 4, RowsPacking::kNone}, std::vector<std::byte>(100)),
            SendStatus::kOk);
  EXPECT_EQ(WaitFor(server).status, ReceiveStatus::kMessage);
}

TEST(RowsSocketTest, LongestBatchTravelsEncryptedAndAStrangersDoesNot) {
  const KeyFolder folder;
  const CurveKeys server_keys = CurveKeys::Make(), good = CurveKeys::Make();
  folder.Allow("actor", good);
  RowsServer server({.endpoint = kAnyPort.endpoint,
                     .run_id = 5,
                     .security = ServerSecurity::Make(server_keys, folder.path())});
  const auto client = [&](const CurveKeys& own) {
    return RowsClient({.endpoint = server.endpoint(),
                       .security = {.own = own, .server_key = server_keys.public_key}});
  };
  RowsClient stranger = client(CurveKeys::Make()), actor = client(good);
  const std::vector<std::byte> rows(kMaxPayloadBytes, std::byte{3});
  static_cast<void>(stranger.Send(RowBatch{9, 2, 4, RowsPacking::kNone}, rows));
  ASSERT_EQ(actor.Send(RowBatch{1, 2, 4, RowsPacking::kNone}, rows), SendStatus::kOk);
  const RowsReceived received = WaitFor(server);
  ASSERT_EQ(received.status, ReceiveStatus::kMessage);
  EXPECT_EQ(std::get<RowBatch>(received.message).stream, 1U);
  EXPECT_TRUE(std::ranges::equal(received.payload.bytes(), rows));
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  const auto refused = static_cast<std::size_t>(Handshake::kUnknownKey);
  while (server.handshakes()[refused] == 0 && !deadline.Passed()) server.Poll(10);
  EXPECT_EQ(server.handshakes()[refused], 1U);
  while (stranger.HandshakeProblem().empty() && !deadline.Passed()) stranger.Poll(10);
  EXPECT_NE(stranger.HandshakeProblem().find("does not allow our key"), std::string::npos);
  EXPECT_EQ(actor.HandshakeProblem(), "");
  EXPECT_EQ(server.public_key(), server_keys.public_key);
  EXPECT_EQ(server.Receive().status, ReceiveStatus::kTimeout);
}

// Reads 20 MiB of a client's rows while the server has looked at its input several times.
void ExpectHonestRowsPass(RowsServer& server, RowsClient& client) {
  const std::vector<std::byte> rows(std::size_t{1} << 20, std::byte{3});
  for (std::uint64_t i = 0; i < 20; ++i) {
    ASSERT_EQ(client.Send(RowBatch{1, i, 4, RowsPacking::kNone}, rows), SendStatus::kOk);
    ASSERT_EQ(WaitFor(server).status, ReceiveStatus::kMessage) << i;
    const Deadline pause = Deadline::AfterMs(50);
    while (!pause.Passed()) server.Poll(10);
  }
  EXPECT_EQ(server.hang_ups(), 0U);
}

TEST(RowsSocketTest, RowsThatAreReadAreNotHungUpOnHoweverManyTheyAre) {
  RowsServer plain({.endpoint = kAnyPort.endpoint, .most_input_bytes = 4 << 20});
  RowsClient client({.endpoint = plain.endpoint()});
  ExpectHonestRowsPass(plain, client);
  const KeyFolder folder;
  const CurveKeys server_keys = CurveKeys::Make(), keys = CurveKeys::Make();
  folder.Allow("actor", keys);
  RowsServer secured({.endpoint = kAnyPort.endpoint,
                      .security = ServerSecurity::Make(server_keys, folder.path()),
                      .most_input_bytes = 4 << 20});
  RowsClient encrypted({.endpoint = secured.endpoint(),
                        .security = {.own = keys, .server_key = server_keys.public_key}});
  ExpectHonestRowsPass(secured, encrypted);
}

TEST(RowsSocketTest, MessageWithoutEndIsHungUpOnBeyondBoundAndCredit) {
  RowsServer server({.endpoint = kAnyPort.endpoint, .most_input_bytes = 4 << 20});
  RowsClient client({.endpoint = server.endpoint()});
  EndlessPeer peer(server.endpoint());
  server.GiveCredit(8 << 20);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(peer.SayMore());  // 10 MB: within the credit
  const Deadline several_looks = Deadline::AfterMs(500);
  while (!several_looks.Passed()) server.Poll(10);
  EXPECT_EQ(server.hang_ups(), 0U);
  server.GiveCredit(0);
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (server.hang_ups() == 0 && !deadline.Passed()) server.Poll(10);
  EXPECT_EQ(server.hang_ups(), 1U);
  while (peer.SayMore()) ASSERT_FALSE(deadline.Passed()) << "it is not hung up on";
  ASSERT_EQ(client.Send(RowsPing{}), SendStatus::kOk);
  EXPECT_EQ(WaitFor(server).status, ReceiveStatus::kMessage);
}

TEST(RowsSocketTest, PortInUseAndNonsenseNameTheOption) {
  RowsServer first(kAnyPort);
  for (const std::string& endpoint : {first.endpoint(), std::string("nonsense")}) {
    try {
      RowsServer second({.endpoint = endpoint});
      FAIL() << "bound " << endpoint;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(std::string(error.what()).find(endpoint), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("--rows-bind"), std::string::npos);
    }
  }
  EXPECT_THROW(RowsClient({.endpoint = "nonsense"}), Error);
}

TEST(RowsSocketTest, MessageWithTheWrongNumberOfFramesIsMalformed) {
  RowsServer server(kAnyPort);
  RawPeer hostile(server.endpoint());
  const auto batch = EncodeRows(RowBatch{1, 2, 4, RowsPacking::kNone});
  const auto ping = EncodeRows(RowsPing{});
  const std::vector<std::byte> bytes(64);
  const std::vector<std::vector<std::vector<std::byte>>> messages = {
      {batch}, {ping, bytes}, {batch, bytes, bytes}, {batch, bytes, bytes, bytes}, {bytes}, {{}}};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    hostile.Send(messages[i]);
    EXPECT_EQ(WaitFor(server).status, ReceiveStatus::kMalformed) << i;
    EXPECT_EQ(server.stats().malformed, i + 1);
  }
  hostile.Send({batch, {}});
  EXPECT_EQ(WaitFor(server).status, ReceiveStatus::kMessage);
}

TEST(RowsSocketTest, FrameBeyondTheBoundCostsOnlyItsSender) {
  RowsServer server(kAnyPort);
  RowsClient client({.endpoint = server.endpoint()});
  RawPeer hostile(server.endpoint());
  const auto batch = EncodeRows(RowBatch{1, 2, 4, RowsPacking::kNone});
  hostile.Send({batch, std::vector<std::byte>(kMaxPayloadBytes + 1)});
  ASSERT_EQ(
      client.Send(RowBatch{9, 0, 1, RowsPacking::kNone}, std::vector<std::byte>(kMaxPayloadBytes)),
      SendStatus::kOk);
  const RowsReceived received = WaitFor(server);
  ASSERT_EQ(received.status, ReceiveStatus::kMessage);
  EXPECT_EQ(std::get<RowBatch>(received.message).stream, 9U);
  EXPECT_EQ(received.payload.bytes().size(), kMaxPayloadBytes);
}

TEST(RowsSocketTest, FullQueueIsAResult) {
  RowsClient client({.endpoint = "tcp://127.0.0.1:1", .send_high_water_mark = 4});
  int sent = 0;
  while (client.Send(RowsPing{}) == SendStatus::kOk && sent < 100) ++sent;
  EXPECT_EQ(sent, 4);
  EXPECT_EQ(client.stats().dropped_out, 1U);
}

TEST(RowsSocketTest, PeerThatIsNotThereIsAResult) {
  RowsServer server(kAnyPort);
  EXPECT_EQ(server.Send("nobody", RowsPing{}), SendStatus::kNoPeer);
  EXPECT_EQ(server.Receive().status, ReceiveStatus::kTimeout);
}

TEST(RowsSocketTest, ReopenFindsALearnerThatMovedAndBacksOff) {
  FakeClock clock;
  RowsServer server(kAnyPort);
  RowsClient client({.endpoint = "tcp://127.0.0.1:1"}, clock);
  ASSERT_TRUE(client.Reopen(server.endpoint(), ""));
  EXPECT_FALSE(client.Reopen());
  ASSERT_EQ(client.Send(RowsPing{}), SendStatus::kOk);
  EXPECT_EQ(WaitFor(server).status, ReceiveStatus::kMessage);
  clock.AdvanceNs(kNanosPerSecond);
  EXPECT_TRUE(client.Reopen());
  EXPECT_EQ(client.stats().reconnects, 2U);
  EXPECT_EQ(client.endpoint(), server.endpoint());
}

}  // namespace
}  // namespace tetrion::wire
