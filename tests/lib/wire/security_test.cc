#include "lib/wire/security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/wire/session_link.h"
#include "lib/wire/socket.h"
#include "tests/lib/wire/key_folder_for_test.h"
#include "tests/lib/wire/quiet_owner_for_test.h"

namespace tetrion::wire {
namespace {

using ::testing::HasSubstr;

constexpr int kWaitMs = 20'000;

bool Until(const std::function<bool()>& holds) {
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (!holds()) {
    if (deadline.Passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A server that allows "good" alone.
class SecurityTest : public ::testing::Test {
 protected:
  SecurityTest() {
    folder_.Allow("good", good_);
    server_ = std::make_unique<ControlServer>("tcp://127.0.0.1:0", 0, Of(folder_));
  }
  ServerSecurity Of(const KeyFolder& folder) {
    return ServerSecurity::Make(server_keys_, folder.path());
  }
  ClientSecurity With(const CurveKeys& own) const {
    return {.own = own, .server_key = server_keys_.public_key};
  }
  std::unique_ptr<ControlClient> Client(const ClientSecurity& security = {}) const {
    return std::make_unique<ControlClient>(
        ControlClient::Config{.endpoint = server_->endpoint(), .security = security});
  }
  std::uint64_t Count(Handshake kind) const {
    return server_->handshakes()[static_cast<std::size_t>(kind)];
  }
  // The client is refused for that reason, says so, and nothing of it arrives. Where one end has no
  // keys, both notice, and the one that is later sees a connection that breaks.
  void ExpectRefused(ControlClient& client, Handshake counted_as, const std::string& says) {
    const auto count = [&] {
      return Count(counted_as) + (counted_as == Handshake::kNoKeys ? Count(Handshake::kBroken) : 0);
    };
    const std::uint64_t arrived = server_->stats().messages_in;
    const std::uint64_t refused = ++refused_[static_cast<std::size_t>(counted_as)];
    static_cast<void>(client.Send(Goodbye{1, 2}));
    EXPECT_TRUE(Until([&] { return count() >= refused; })) << Name(counted_as);
    EXPECT_TRUE(Until([&] { return !client.HandshakeProblem().empty(); }));
    EXPECT_THAT(client.HandshakeProblem(), HasSubstr(says));
    EXPECT_FALSE(server_->Receive().has_value());
    EXPECT_EQ(server_->stats().messages_in, arrived);
  }
  // A message of the client arrives and its answer comes back.
  void ExpectServed(ControlClient& client, const Message& message = Goodbye{1, 2}) {
    ASSERT_EQ(client.Send(message), SendStatus::kOk);
    std::optional<ControlServer::Received> received;
    ASSERT_TRUE(Until([&] {
      received = server_->Receive();
      return received.has_value();
    }));
    EXPECT_EQ(Decode(received->bytes).status, DecodeStatus::kOk);
    ASSERT_EQ(server_->Send(received->peer, Fenced{7}), SendStatus::kOk);
    EXPECT_EQ(client.Receive(kWaitMs).status, ReceiveStatus::kMessage);
    EXPECT_EQ(client.HandshakeProblem(), "");
  }

  const KeyFolder folder_;
  const CurveKeys server_keys_ = CurveKeys::Make(), good_ = CurveKeys::Make(),
                  stranger_ = CurveKeys::Make();
  std::unique_ptr<ControlServer> server_;
  HandshakeTotals refused_{};  // what this test has caused
};

TEST_F(SecurityTest, AllowedKeyIsServed) {
  const auto client = Client(With(good_));
  ExpectServed(*client);
  EXPECT_TRUE(Until([&] { return Count(Handshake::kAccepted) == 1; }));
}

TEST_F(SecurityTest, KeyThatIsNotInTheFolderIsRefusedByName) {
  const auto client = Client(With(stranger_));
  ExpectRefused(*client, Handshake::kUnknownKey, "does not allow our key " + stranger_.public_key);
  ExpectServed(*Client(With(good_)));
}

TEST_F(SecurityTest, PlainClientIsToldToBringKeys) {
  const auto client = Client();
  ExpectRefused(*client, Handshake::kNoKeys, "give --curve-key and --curve-server");
  ExpectServed(*Client(With(good_)));
}

TEST_F(SecurityTest, ClientWithAnotherServersKeyIsToldWhichOptionToMend) {
  const auto client = Client({.own = good_, .server_key = stranger_.public_key});
  ExpectRefused(*client, Handshake::kWrongKey, "--curve-server");
  ExpectServed(*Client(With(good_)));
}

TEST_F(SecurityTest, ClientWithKeysIsToldThatTheServerHasNone) {
  server_ = std::make_unique<ControlServer>("tcp://127.0.0.1:0");
  const auto client = Client(With(good_));
  static_cast<void>(client->Send(Goodbye{1, 2}));
  EXPECT_TRUE(Until([&] { return !client->HandshakeProblem().empty(); }));
  EXPECT_THAT(client->HandshakeProblem(), HasSubstr("--curve-key"));
  EXPECT_FALSE(server_->Receive().has_value());
  ExpectServed(*Client());
}

TEST_F(SecurityTest, KeyAddedWhileTheServerRunsIsServedAndARemovedOneRefused) {
  const auto early = Client(With(stranger_));
  ExpectRefused(*early, Handshake::kUnknownKey, "does not allow our key");
  folder_.Allow("late", stranger_);
  ExpectServed(*Client(With(stranger_)));
  folder_.Remove("late");
  const auto again = Client(With(stranger_));
  ExpectRefused(*again, Handshake::kUnknownKey, "does not allow our key");
}

TEST_F(SecurityTest, RefusedClientIsServedAfterItReopened) {
  const auto client = Client(With(stranger_));
  ExpectRefused(*client, Handshake::kUnknownKey, "does not allow our key");
  folder_.Allow("late", stranger_);
  ASSERT_TRUE(client->Reopen());
  ExpectServed(*client);
}

TEST_F(SecurityTest, ServerBoundAnewKeepsKeysAndCounts) {
  const auto client = Client(With(good_));
  ExpectServed(*client);
  ASSERT_TRUE(Until([&] { return Count(Handshake::kAccepted) == 1; }));
  server_->Rebind();
  ExpectRefused(*Client(With(stranger_)), Handshake::kUnknownKey, "does not allow our key");
  ExpectServed(*Client(With(good_)));
  EXPECT_TRUE(Until([&] { return Count(Handshake::kAccepted) >= 2; }));
}

TEST_F(SecurityTest, LongestMessageTravelsEncryptedAndALongerOneDoesNot) {
  const SocketContext context{SocketContext::Config{}};
  void* const socket = zmq_socket(context.handle(), ZMQ_DEALER);
  const int no_linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof(no_linger));
  Secure(socket, With(good_));
  ASSERT_EQ(zmq_connect(socket, server_->endpoint().c_str()), 0);
  const std::string bytes(kMaxMessageBytes + kCurveOverheadBytes, 'x');
  zmq_send(socket, bytes.data(), kMaxMessageBytes, 0);
  std::optional<ControlServer::Received> received;
  EXPECT_TRUE(Until([&] {
    received = server_->Receive();
    return received.has_value();
  }));
  EXPECT_EQ(received->bytes.size(), kMaxMessageBytes);
  zmq_send(socket, bytes.data(), bytes.size(), 0);
  ExpectServed(*Client(With(good_)));
  EXPECT_FALSE(server_->Receive().has_value());
  zmq_close(socket);
}

TEST_F(SecurityTest, UnixSocketsHaveKeysToo) {
  const KeyFolder place;
  server_ = std::make_unique<ControlServer>("ipc://" + place.File("socket"), 0, Of(folder_));
  ExpectServed(*Client(With(good_)));
  ExpectRefused(*Client(), Handshake::kNoKeys, "give --curve-key");
}

// The member that nobody allows goes on asking, and its error says what to do.
TEST_F(SecurityTest, SessionThatGivesUpSaysWhatWasWrongWithItsKey) {
  QuietOwner owner;
  FakeClock clock;
  SessionLink link({.endpoint = [this] { return server_->endpoint(); },
                    .give_up_ns = 5 * kNanosPerSecond,
                    .security = With(stranger_)},
                   owner, clock);
  ASSERT_TRUE(Until([&] {
    link.DoWork(1);
    return link.problem().find(stranger_.public_key) != std::string::npos;
  }));
  try {
    for (int i = 0; i < 12; ++i) {
      clock.AdvanceNs(kNanosPerSecond / 2);  // more at once would be this process's own standstill
      link.DoWork(1);
    }
    FAIL() << "did not give up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_THAT(error.what(), HasSubstr("does not allow our key"));
    EXPECT_THAT(error.what(), HasSubstr("--curve-allow"));
  }
}

// A thousand bad handshakes while one good member asks and is answered all the time.
TEST_F(SecurityTest, BadClientsByTheHundredDoNotKeepAGoodOneFromItsAnswers) {
  constexpr int kRounds = 10, kBad = 40;
  const auto good = Client(With(good_));
  ExpectServed(*good);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::unique_ptr<ControlClient>> bad;
    const auto context = std::make_shared<SocketContext>(SocketContext::Config{});
    for (int i = 0; i < kBad; ++i) {
      const ClientSecurity security = i % 2 == 0 ? With(stranger_) : ClientSecurity{};
      bad.push_back(std::make_unique<ControlClient>(ControlClient::Config{
          .endpoint = server_->endpoint(), .context = context, .security = security}));
      static_cast<void>(bad.back()->Send(Goodbye{1, 2}));
      ExpectServed(*good);
    }
  }
  EXPECT_TRUE(
      Until([&] { return Count(Handshake::kUnknownKey) > 0 && Count(Handshake::kNoKeys) > 0; }));
  EXPECT_EQ(server_->stats().messages_in, 1U + kRounds * kBad);
}

}  // namespace
}  // namespace tetrion::wire
