#include "lib/http/http_get.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"

// What the client makes of peers that are none of our services. Answers of ours are in
// http_endpoint_test.cc.
namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;

// A server whose one connection, with its request read, is `serve`'s on a thread of its own.
class OddServer {
 public:
  explicit OddServer(std::function<void(OddServer&)> serve)
      : listening_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* plain = reinterpret_cast<sockaddr*>(&at);
    EXPECT_EQ(bind(listening_.get(), plain, size), 0);
    EXPECT_EQ(listen(listening_.get(), 1), 0);
    EXPECT_EQ(getsockname(listening_.get(), plain, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    thread_ = std::thread([this, serve = std::move(serve)] {
      connection_ = FileDescriptor(accept(listening_.get(), nullptr, nullptr));
      char request[4096];
      if (recv(connection_.get(), request, sizeof request, 0) > 0) serve(*this);
      connection_ = FileDescriptor();
    });
  }
  ~OddServer() {
    stopping_ = true;
    shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }
  const std::string& address() const { return address_; }
  // False once the client has closed.
  bool Send(const std::string& text) const {
    return send(connection_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  bool stopping() const { return stopping_; }

 private:
  const FileDescriptor listening_;
  FileDescriptor connection_;
  std::string address_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// The error of a question to `server`.
std::string ErrorOf(const OddServer& server, int timeout_ms) {
  try {
    (void)HttpGet(server.address(), "/", timeout_ms);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_THAT(error.what(), HasSubstr("GET http://" + server.address() + "/: "));
    return error.what();
  }
  return "no error";
}

TEST(HttpGetTest, BodyIsWhatComesUntilTheEnd) {
  const OddServer server(
      [](OddServer& self) { self.Send("HTTP/1.1 200 OK\r\nX: y\r\n\r\nbody\r\n\r\n"); });
  EXPECT_EQ(HttpGet(server.address(), "/", kPatienceMs), "body\r\n\r\n");
}

TEST(HttpGetTest, OtherStatusIsAnErrorWithTheStartOfTheAnswer) {
  const OddServer server([](OddServer& self) {
    self.Send("HTTP/1.1 503 Not yet\r\n\r\nwaiting" + std::string(5000, '.') + "end\n");
  });
  const std::string error = ErrorOf(server, kPatienceMs);
  EXPECT_THAT(error, HasSubstr("status 503: waiting..."));
  EXPECT_LT(error.size(), 1200U);
}

TEST(HttpGetTest, AnswerWithoutAStatusIsAnError) {
  for (const char* text : {"HTTP/1.1\r\n\r\n", "HTTP/1.1 OK\r\n\r\n"}) {
    const OddServer server([text](OddServer& self) { self.Send(text); });
    EXPECT_THAT(ErrorOf(server, kPatienceMs), HasSubstr("status 0")) << text;
  }
}

TEST(HttpGetTest, AnswerThatIsCutShortIsAnError) {
  for (const char* text : {"", "HTTP/1.1 200 OK\r\nX: y\r\n", "HTTP/1.1", "hello\r\n\r\n",
                           "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfour"}) {
    const OddServer server([text](OddServer& self) { self.Send(text); });
    EXPECT_THAT(ErrorOf(server, kPatienceMs), HasSubstr("cut short")) << text;
  }
}

// No read waits long: the deadline of the whole answer ends it.
TEST(HttpGetTest, DrippingPeerHoldsNobodyBeyondTheDeadline) {
  const OddServer server([](OddServer& self) {
    self.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    const Deadline enough = Deadline::AfterMs(5000);
    while (self.Send("x") && !self.stopping() && !enough.Passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_THAT(ErrorOf(server, 200), HasSubstr("within 200 ms"));
}

TEST(HttpGetTest, PeerThatFloodsIsCutByItsBytesInHeadersToo) {
  for (const char* head : {"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nX: "}) {
    const OddServer server([head](OddServer& self) {
      const std::string many(std::size_t{1} << 20, 'x');
      self.Send(head);
      for (int i = 0; i < 64 && self.Send(many); ++i) continue;
    });
    EXPECT_THAT(ErrorOf(server, kPatienceMs), HasSubstr("more than 16777216 bytes")) << head;
  }
}

TEST(HttpGetTest, SilentOrAbsentPeersAreErrorsThatSayWhatToLookAt) {
  std::string address;
  {
    const OddServer silent([](OddServer& self) {
      while (!self.stopping()) std::this_thread::yield();
    });
    address = silent.address();
    EXPECT_THAT(ErrorOf(silent, 50), HasSubstr("within 50 ms"));
  }
  EXPECT_THROW((void)HttpGet(address, "/", kPatienceMs), Error);
  EXPECT_THROW((void)HttpGet("nonsense", "/", kPatienceMs), Error);
}

}  // namespace
}  // namespace tetrion
