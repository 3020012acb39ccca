#include "lib/wire/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/core/error.h"
#include "tests/lib/wire/raw_peer_for_test.h"
#include "tests/support/no_open_files.h"

namespace tetrion::wire {
namespace {

using ::testing::HasSubstr;

constexpr int kWaitMs = 5000;

std::optional<ControlServer::Received> WaitFor(ControlServer& server) {
  const Deadline deadline = Deadline::AfterMs(kWaitMs);
  while (!deadline.Passed()) {
    if (auto received = server.Receive()) return received;
    server.Poll(50);
  }
  return std::nullopt;
}

TEST(SocketTest, RequestAndAnswerTravel) {
  ControlServer server("tcp://127.0.0.1:0");
  ControlClient client({.endpoint = server.endpoint()});
  ASSERT_EQ(client.Send(GrantRequest{1, 2, 3}), SendStatus::kOk);
  const auto received = WaitFor(server);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(std::get<GrantRequest>(Decode(received->bytes).message).request, 2U);
  ASSERT_EQ(server.Send(received->peer, Fenced{7}), SendStatus::kOk);
  const ReceiveResult answer = client.Receive(kWaitMs);
  ASSERT_EQ(answer.status, ReceiveStatus::kMessage);
  EXPECT_EQ(std::get<Fenced>(answer.message).session, 7U);
  EXPECT_EQ(server.stats().messages_in, 1U);
  EXPECT_EQ(client.stats().bytes_out, server.stats().bytes_in);
}

TEST(SocketTest, MessagesTravelByIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "this machine has no IPv6";
  ControlServer server("tcp://[::1]:0");
  EXPECT_EQ(server.endpoint().find("tcp://[::1]:"), 0U);
  ControlClient client({.endpoint = server.endpoint()});
  ASSERT_EQ(client.Send(GrantRequest{1, 2, 3}), SendStatus::kOk);
  EXPECT_TRUE(WaitFor(server).has_value());
}

// Whatever the umask, and as often as it is made.
TEST(SocketTest, SocketInTheFileSystemIsItsUsersAlone) {
  const mode_t before = umask(0);
  const std::string path = "/tmp/tetrion-socket-test-" + std::to_string(getpid());
  {
    ControlServer server("ipc://" + path);
    for (int i = 0; i < 2; ++i) {
      struct stat info = {};
      ASSERT_EQ(stat(path.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777, 0600U);
      server.Rebind();
    }
  }
  umask(before);
}

TEST(SocketTest, FileInTheSocketsPlaceIsRefusedAndKept) {
  const std::string path = "/tmp/tetrion-socket-test-" + std::to_string(getpid());
  std::ofstream(path) << "precious";
  try {
    ControlServer server("ipc://" + path);
    FAIL() << "a file is there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(path + ": it is there and is no socket"));
  }
  std::string kept;
  std::ifstream(path) >> kept;
  EXPECT_EQ(kept, "precious");
  EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
  std::filesystem::remove(path);
}

TEST(SocketTest, WantOfOpenFilesIsForNowNotForGood) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const testing::NoOpenFiles none;
  try {
    ControlServer server("ipc:///tmp/tetrion_socket_test.sock");
    FAIL() << "the lock's file is open";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain) << error.what();
  }
}

TEST(SocketTest, PortInUseNamesAddressAndWhatToDo) {
  ControlServer first("tcp://127.0.0.1:0");
  try {
    ControlServer second(first.endpoint());
    FAIL() << "bound twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find(first.endpoint()), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("--bind tcp://127.0.0.1:0"), std::string::npos);
  }
}

TEST(SocketTest, AddressThatCannotBeParsedIsAUsageError) {
  EXPECT_THROW(ControlServer("nonsense"), Error);
  EXPECT_THROW(ControlClient({.endpoint = "nonsense"}), Error);
}

TEST(SocketTest, PeerThatIsNotThereIsAResult) {
  ControlServer server("tcp://127.0.0.1:0");
  EXPECT_EQ(server.Send("nobody", Fenced{1}), SendStatus::kNoPeer);
  EXPECT_EQ(server.stats().dropped_out, 1U);
}

TEST(SocketTest, ReceiveWithoutAMessageTimesOut) {
  ControlServer server("tcp://127.0.0.1:0");
  ControlClient client({.endpoint = server.endpoint()});
  EXPECT_EQ(client.Receive(0).status, ReceiveStatus::kTimeout);
  EXPECT_EQ(client.Receive(10).status, ReceiveStatus::kTimeout);
  EXPECT_FALSE(server.Receive().has_value());
}

TEST(SocketTest, PollWakesForTheOtherDescriptor) {
  ControlServer server("tcp://127.0.0.1:0");
  const int fd = eventfd(1, EFD_NONBLOCK);
  const Readiness ready = server.Poll(kWaitMs, fd);
  EXPECT_TRUE(ready.extra_fd);
  EXPECT_FALSE(ready.socket);
  close(fd);
}

TEST(SocketTest, OversizedMessageCostsOnlyItsSender) {
  ControlServer server("tcp://127.0.0.1:0");
  ControlClient client({.endpoint = server.endpoint()});
  RawPeer hostile(server.endpoint());
  hostile.Send({std::vector(kMaxMessageBytes + 1, std::byte{'x'})});
  ASSERT_EQ(client.Send(Goodbye{1, 2}), SendStatus::kOk);
  const auto received = WaitFor(server);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(Decode(received->bytes).status, DecodeStatus::kOk);
  EXPECT_EQ(server.stats().messages_in, 1U);
}

TEST(SocketTest, GarbageReachesDecodeAndNothingElse) {
  ControlServer server("tcp://127.0.0.1:0");
  RawPeer hostile(server.endpoint());
  for (const std::size_t bytes : {0U, 1U, 100U, 65536U}) {
    hostile.Send({std::vector(bytes, std::byte{'x'})});
    const auto received = WaitFor(server);
    ASSERT_TRUE(received.has_value()) << bytes;
    EXPECT_NE(Decode(received->bytes).status, DecodeStatus::kOk);
  }
}

TEST(SocketTest, ClientFindsAServerThatCameBackOnItsPort) {
  auto server = std::make_unique<ControlServer>("tcp://127.0.0.1:0");
  const std::string endpoint = server->endpoint();
  FakeClock clock;
  ControlClient client({.endpoint = endpoint}, clock);
  ASSERT_EQ(client.Send(Goodbye{1, 0}), SendStatus::kOk);
  ASSERT_TRUE(WaitFor(*server).has_value());
  server.reset();
  server = std::make_unique<ControlServer>(endpoint);
  EXPECT_TRUE(client.Reopen());
  EXPECT_FALSE(client.Reopen());  // too soon
  ASSERT_EQ(client.Send(Goodbye{2, 0}), SendStatus::kOk);
  ASSERT_TRUE(WaitFor(*server).has_value());
  EXPECT_EQ(client.stats().reconnects, 1U);
}

}  // namespace
}  // namespace tetrion::wire
