#include "lib/http/http_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/http/http_get.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int kTimeoutMs = 20'000;

std::uint16_t PortOf(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// A plain TCP connection to the endpoint.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = kTimeoutMs / 1000, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Peer() { close(fd_); }
  bool connected() const { return connected_; }
  bool Send(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Everything until the other side closes, or the time-out.
  std::string ReadAll() const {
    std::string text;
    char buffer[4096];
    pollfd readable = {fd_, POLLIN, 0};
    while (poll(&readable, 1, kTimeoutMs) == 1) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) return text;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    ADD_FAILURE() << "the connection was not closed";
    return text;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class HttpEndpointTest : public ::testing::Test {
 protected:
  HttpEndpointTest()
      : endpoint_("127.0.0.1:0", registry_,
                  [this] { return Readiness{ready_.load(), "waiting for \"x\""}; }) {
    endpoint_.AddJson("/status", [] { return std::string("{\"run\":\"r\"}"); });
    endpoint_.AddJson("/broken", []() -> std::string { throw std::runtime_error("broken page"); });
    endpoint_.Start();
  }
  std::string Ask(const std::string& request) {
    const Peer peer(PortOf(endpoint_.address()));
    EXPECT_TRUE(peer.connected());
    EXPECT_TRUE(peer.Send(request));
    return peer.ReadAll();
  }

  std::atomic<bool> ready_{false};
  MetricsRegistry registry_;
  HttpEndpoint endpoint_;
};

TEST_F(HttpEndpointTest, ServesMetricsAndPages) {
  registry_.Counter("tetrion_learner_updates_total").Add(5);
  EXPECT_THAT(HttpGet(endpoint_.address(), "/metrics", kTimeoutMs),
              HasSubstr("tetrion_learner_updates_total 5\n"));
  EXPECT_EQ(HttpGet(endpoint_.address(), "/status", kTimeoutMs), "{\"run\":\"r\"}");
  EXPECT_EQ(HttpGet(endpoint_.address(), "/livez", kTimeoutMs), "{\"alive\":true}\n");
}

TEST_F(HttpEndpointTest, ReadinessSaysWhyNot) {
  const std::string refused = Ask("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr(R"({"ready":false,"reason":"waiting for \"x\""})"));
  ready_.store(true);
  EXPECT_THAT(HttpGet(endpoint_.address(), "/readyz", kTimeoutMs), HasSubstr("{\"ready\":true"));
}

TEST_F(HttpEndpointTest, OnlyGetIsServed) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"}) {
    const std::string answer =
        Ask(std::string(method) + " /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405")) << method;
  }
  EXPECT_THAT(Ask("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /metrics\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpEndpointTest, FailingPageIsAnErrorAnswerAndNothingElse) {
  EXPECT_THROW(HttpGet(endpoint_.address(), "/broken", kTimeoutMs), Error);
  EXPECT_EQ(HttpGet(endpoint_.address(), "/livez", kTimeoutMs), "{\"alive\":true}\n");
}

TEST_F(HttpEndpointTest, SilentPeersAreCutAndOthersServed) {
  const std::uint16_t port = PortOf(endpoint_.address());
  std::vector<std::unique_ptr<Peer>> silent;
  for (int i = 0; i < 12; ++i) {
    silent.push_back(std::make_unique<Peer>(port));
    EXPECT_TRUE(silent.back()->Send("GET /met"));
  }
  EXPECT_EQ(HttpGet(endpoint_.address(), "/livez", kTimeoutMs), "{\"alive\":true}\n");
  for (const auto& peer : silent) peer->ReadAll();  // fails unless each connection gets closed
}

// A peer that drips a byte at a time never falls silent; the limit of the whole connection ends it.
TEST_F(HttpEndpointTest, DrippingPeerIsCutAsAWhole) {
  const Peer peer(PortOf(endpoint_.address()));
  ASSERT_TRUE(peer.Send("GET /metrics HTTP/1.1\r\nX: "));
  int drips = 0;
  constexpr int kMaxDrips = 150;  // at least 15 s, three times the limit
  while (drips < kMaxDrips && peer.Send("x")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ++drips;
  }
  EXPECT_LT(drips, kMaxDrips);
}

// One after the other, each for its whole limit, they would take 50 s.
TEST_F(HttpEndpointTest, DrippingPeersDoNotKeepOthersWaiting) {
  std::deque<Peer> dripping;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(
        dripping.emplace_back(PortOf(endpoint_.address())).Send("GET /livez HTTP/1.1\r\nX: "));
  }
  std::atomic<bool> served{false};
  std::thread drips([&] {
    while (!served.load()) {
      for (const Peer& peer : dripping) peer.Send("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  std::string page;
  EXPECT_NO_THROW(page = HttpGet(endpoint_.address(), "/livez", kTimeoutMs));
  EXPECT_EQ(page, "{\"alive\":true}\n");
  served.store(true);
  drips.join();
}

// The library keeps a line until it ends.
TEST_F(HttpEndpointTest, RequestWithoutAnEndIsCutByItsBytes) {
  for (const char* piece : {"a", "a: b\r\n"}) {
    const Peer peer(PortOf(endpoint_.address()));
    ASSERT_TRUE(peer.Send("GET /livez HTTP/1.1\r\nX: "));
    std::string many;
    while (many.size() < 64 * 1024) many += piece;
    // What the kernel holds of a connection is below 16 MiB.
    constexpr int kMaxPieces = 512;
    int pieces = 0;
    while (pieces < kMaxPieces && peer.Send(many)) ++pieces;
    EXPECT_LT(pieces, kMaxPieces) << piece;
  }
}

// A page for each of the parts that one header names would be 97 MB of metrics.
TEST_F(HttpEndpointTest, PartsOfAPageAreRefused) {
  std::string parts = "0-";
  for (int i = 0; i < 2000; ++i) parts += ",0-";
  for (const std::string& range : {std::string("0-"), parts}) {
    const std::string answer =
        Ask("GET /metrics HTTP/1.1\r\nHost: x\r\nRange: bytes=" + range + "\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 416"));
    EXPECT_LT(answer.size(), 1000U);
  }
}

TEST_F(HttpEndpointTest, StopCutsConnectionsUnderWayAndFreesThePort) {
  const Peer peer(PortOf(endpoint_.address()));
  ASSERT_TRUE(peer.Send("GET /metrics HT"));
  endpoint_.Stop();
  endpoint_.Stop();
  EXPECT_THROW(HttpGet(endpoint_.address(), "/livez", 1000), Error);
  HttpEndpoint next(endpoint_.address(), registry_, [] { return Readiness{true, ""}; });
  EXPECT_EQ(next.address(), endpoint_.address());
}

// The socket of this process that listens on `port`.
int ListeningSocket(std::uint16_t port) {
  for (int fd = 0; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    sockaddr_in at{};
    socklen_t at_size = sizeof at;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&at), &at_size) == 0 &&
        ntohs(at.sin_port) == port) {
      return fd;
    }
  }
  return -1;
}

// A socket that has `port`; an invalid one where another has it.
FileDescriptor BoundTo(std::uint16_t port) {
  FileDescriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // over connections of the port that have ended
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = bind(file.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  return bound && listen(file.get(), 1) == 0 ? std::move(file) : FileDescriptor();
}

std::size_t CountOf(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// What this process writes to its standard output while the object lives: lines of the log.
class LoggedLines {
 public:
  LoggedLines() : file_(std::tmpfile()), before_(dup(STDOUT_FILENO)) {
    dup2(fileno(file_), STDOUT_FILENO);
  }
  ~LoggedLines() {
    dup2(before_, STDOUT_FILENO);
    close(before_);
    std::fclose(file_);
  }
  LoggedLines(const LoggedLines&) = delete;
  LoggedLines& operator=(const LoggedLines&) = delete;

  std::string Text() const {
    std::string text(1 << 16, '\0');
    const ssize_t bytes = pread(fileno(file_), text.data(), text.size(), 0);
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
  }

 private:
  std::FILE* const file_;
  const int before_;
};

bool Answers(const std::string& address) {
  try {
    return HttpGet(address, "/livez", kTimeoutMs) == "{\"alive\":true}\n";
  } catch (const Error&) {
    return false;
  }
}

bool AnswersInTime(const std::string& address) {
  const Deadline deadline = Deadline::AfterMs(kTimeoutMs);
  bool answers = Answers(address);
  for (; !answers && !deadline.Passed(); answers = Answers(address)) std::this_thread::yield();
  return answers;
}

TEST_F(HttpEndpointTest, PortIsServedAgainAfterAConnectionCouldNotBeAccepted) {
  for (int i = 0; i < 2; ++i) {
    const int listening = ListeningSocket(PortOf(endpoint_.address()));
    ASSERT_GE(listening, 0);
    ASSERT_EQ(shutdown(listening, SHUT_RDWR), 0);  // accept fails from now on
    EXPECT_TRUE(AnswersInTime(endpoint_.address()));
  }
}

TEST_F(HttpEndpointTest, PortThatAnotherHasTakenMeanwhileIsToldOnceAndServedWhenItIsFree) {
  std::optional<LoggedLines> log(std::in_place);  // to its end: failures are printed, too
  const std::uint16_t port = PortOf(endpoint_.address());
  const Deadline taken = Deadline::AfterMs(kTimeoutMs);
  std::size_t closed = 0;
  bool held = false;
  {
    FileDescriptor other;
    for (; !other.valid() && !taken.Passed(); ++closed) {  // again where the endpoint was faster
      const int listening = ListeningSocket(port);
      if (listening >= 0) shutdown(listening, SHUT_RDWR);
      other = BoundTo(port);
    }
    held = other.valid();
    while (CountOf("still trying", log->Text()) == 0 && !taken.Passed()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // a few tries more
  }
  const bool answers = AnswersInTime(endpoint_.address());
  const std::string logged = log->Text();
  log.reset();
  EXPECT_TRUE(held);
  EXPECT_TRUE(answers);
  EXPECT_LE(CountOf("could not accept", logged), closed) << logged;
  EXPECT_EQ(CountOf("Address already in use; still trying", logged), 1U) << logged;
}

TEST_F(HttpEndpointTest, StopsWhileItsPortWaitsToBeServedAgain) {
  const int listening = ListeningSocket(PortOf(endpoint_.address()));
  ASSERT_GE(listening, 0);
  ASSERT_EQ(shutdown(listening, SHUT_RDWR), 0);
  endpoint_.Stop();
  EXPECT_FALSE(Answers(endpoint_.address()));
}

TEST_F(HttpEndpointTest, PortInUseIsAUsageErrorWithAddressAndHint) {
  try {
    HttpEndpoint second(endpoint_.address(), registry_, [] { return Readiness{true, ""}; });
    FAIL() << "two services share a port";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 2);
    EXPECT_THAT(error.what(), HasSubstr(endpoint_.address()));
    EXPECT_THAT(error.what(), HasSubstr("--http-bind"));
  }
}

TEST_F(HttpEndpointTest, ManyScrapersAtOnceGetWholeAnswers) {
  for (int i = 0; i < 100; ++i) registry_.Gauge("tetrion_replay_rows", {std::to_string(i)}).Set(i);
  const std::string expected = registry_.SerializeText();
  std::vector<std::thread> threads;
  std::atomic<int> whole{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        if (HttpGet(endpoint_.address(), "/metrics", kTimeoutMs) == expected) whole.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(whole.load(), 80);
}

TEST(HttpBacklogTest, BurstOfScrapersIsKeptUntilTheServerAccepts) {
  MetricsRegistry registry;
  HttpEndpoint endpoint("127.0.0.1:0", registry, [] { return Readiness{}; });
  std::deque<Peer> peers;  // of a server that has not begun to accept
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(peers.emplace_back(PortOf(endpoint.address())).connected()) << i;
  }
}

// Its owner failed before all that the answers look at was there.
TEST(HttpBacklogTest, ServerThatEndsBeforeItsStartAnswersNobody) {
  MetricsRegistry registry;
  std::atomic<int> asked{0};
  for (int i = 0; i < 20; ++i) {
    std::optional<Peer> peer;
    {
      HttpEndpoint endpoint("127.0.0.1:0", registry, [&asked] {
        ++asked;
        return Readiness{true, ""};
      });
      peer.emplace(PortOf(endpoint.address()));
      ASSERT_TRUE(peer->Send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"));
    }
    EXPECT_THAT(peer->ReadAll(), Not(StartsWith("HTTP/1.1 200")));
  }
  EXPECT_EQ(asked.load(), 0);
}

TEST(HttpAddressTest, AddressesThatAreNoneAreRefused) {
  MetricsRegistry registry;
  for (const char* bind :
       {"", "localhost", ":80", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:8x", "::1:0"}) {
    EXPECT_THROW(HttpEndpoint(bind, registry, [] { return Readiness{}; }), Error) << bind;
  }
}

}  // namespace
}  // namespace tetrion
