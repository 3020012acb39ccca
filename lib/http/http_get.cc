#include "lib/http/http_get.h"

#include <netdb.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "lib/core/address.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/mutex.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxShownBytes = 1000;  // of an answer in an error
constexpr std::size_t kPieceBytes = 16 * 1024;
constexpr std::string_view kEndOfHead = "\r\n\r\n";

constexpr std::size_t kMaxLookups = 4;  // those of a dead name server are under way for seconds
constexpr std::int64_t kAnswerIsGoodMs = 5'000;  // a peer may get another address

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// What getaddrinfo says.
struct Found {
  int error = 0;
  Addresses addresses{nullptr, &freeaddrinfo};
  Deadline good_until = Deadline::AfterMs(kAnswerIsGoodMs);
};
using Answer = std::shared_ptr<const Found>;

Found LookUp(const HostPort& peer, int flags) {
  const addrinfo hints = {.ai_flags = AI_NUMERICSERV | flags,
                          .ai_family = AF_UNSPEC,
                          .ai_socktype = SOCK_STREAM,
                          .ai_protocol = 0,
                          .ai_addrlen = 0,
                          .ai_addr = nullptr,
                          .ai_canonname = nullptr,
                          .ai_next = nullptr};
  Found found;
  addrinfo* list = nullptr;
  found.error = getaddrinfo(peer.host.c_str(), std::to_string(peer.port).c_str(), &hints, &list);
  found.addresses.reset(list);
  found.good_until = Deadline::AfterMs(kAnswerIsGoodMs);
  return found;
}

// The look-ups of the process for callers with a deadline, each in a thread of its own. One that
// takes longer than its question answers the next question of the same peer.
class Lookups {
 public:
  // Of the look-up that is under way or was over a moment ago; else of a new one. nullopt: too many
  // are under way. Throws std::system_error when no thread can be started.
  std::optional<std::shared_future<Answer>> Ask(const HostPort& peer);
  // The next question begins anew.
  void Forget(const HostPort& peer);

 private:
  using Key = std::pair<std::string, int>;
  static bool UnderWay(const std::shared_future<Answer>& answer) {
    return answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  Mutex mu_;
  std::map<Key, std::shared_future<Answer>> answers_ TETRION_GUARDED_BY(mu_);
};

std::optional<std::shared_future<Answer>> Lookups::Ask(const HostPort& peer) {
  const Key key(peer.host, peer.port);
  const MutexLock lock(mu_);
  std::erase_if(answers_, [](const auto& entry) {
    return !UnderWay(entry.second) && entry.second.get()->good_until.Passed();
  });
  if (const auto at = answers_.find(key); at != answers_.end()) return at->second;
  if (answers_.size() >= kMaxLookups) {
    std::erase_if(answers_, [](const auto& entry) { return !UnderWay(entry.second); });
  }
  if (answers_.size() >= kMaxLookups) return std::nullopt;
  std::promise<Answer> promise;
  std::shared_future<Answer> answer = promise.get_future();
  // The thread may outlive all but what it holds itself.
  std::thread([peer, promise = std::move(promise)]() mutable {
    promise.set_value(std::make_shared<const Found>(LookUp(peer, 0)));
  }).detach();
  answers_.emplace(key, answer);
  return answer;
}

void Lookups::Forget(const HostPort& peer) {
  const MutexLock lock(mu_);
  const auto at = answers_.find(Key(peer.host, peer.port));
  if (at != answers_.end() && !UnderWay(at->second)) answers_.erase(at);
}

// One question over one connection. Our services answer one request a connection and close it: the
// answer is what comes until then. Every wait ends at the deadline.
class Question {
 public:
  Question(std::string what, int timeout_ms)
      : what_(std::move(what)), timeout_ms_(timeout_ms), deadline_(Deadline::AfterMs(timeout_ms)) {}

  void Connect(const HostPort& peer);
  void Send(std::string_view request);
  std::string Receive();
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ExitCode::kTryAgain, what_ + ": " + reason);
  }

 private:
  Answer Resolve(const HostPort& peer) const;
  int TryConnect(const addrinfo& address, const Deadline& until);
  bool IsReady(short events, const Deadline& until) const;
  void WaitFor(short events) const;
  [[noreturn]] void FailAs(int error) const {
    Fail(std::string(std::strerror(error)) + "; is the service that listens there alive?");
  }

  const std::string what_;
  const int timeout_ms_;
  const Deadline deadline_;
  FileDescriptor socket_;
};

Answer Question::Resolve(const HostPort& peer) const {
  static Lookups lookups;
  Answer found = std::make_shared<const Found>(LookUp(peer, AI_NUMERICHOST));
  if (found->error == 0) return found;
  try {
    const std::optional<std::shared_future<Answer>> later = lookups.Ask(peer);
    if (!later) {
      Fail("the name " + peer.host +
           " was not looked up: four look-ups of earlier questions are not answered yet; does the "
           "name server answer?");
    }
    if (later->wait_for(std::chrono::nanoseconds(deadline_.LeftNs())) !=
        std::future_status::ready) {
      Fail("the name " + peer.host + " is still being looked up after " +
           std::to_string(timeout_ms_) + " ms; does the name server answer?");
    }
    found = later->get();
  } catch (const std::system_error& error) {
    Fail(std::string("the name cannot be looked up: ") + error.what());
  }
  if (found->error == 0) return found;
  lookups.Forget(peer);
  Fail(gai_strerror(found->error));
}

// Returns errno's value; 0: socket_ is connected.
int Question::TryConnect(const addrinfo& address, const Deadline& until) {
  socket_ = FileDescriptor(
      socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return errno;
  if (connect(socket_.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!IsReady(POLLOUT, until)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void Question::Connect(const HostPort& peer) {
  const Answer found = Resolve(peer);
  const addrinfo* const addresses = found->addresses.get();
  std::int64_t left = 0;  // addresses; each has its share of the time that is left
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) ++left;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses; at != nullptr && error != 0; at = at->ai_next) {
    error = TryConnect(*at, Deadline::AfterMs(deadline_.LeftNs() / kNanosPerMilli / left--));
  }
  if (error != 0) FailAs(error);
}

// False when `until` has passed.
bool Question::IsReady(short events, const Deadline& until) const {
  while (!until.Passed()) {
    pollfd waiting = {socket_.get(), events, 0};
    const auto left_ms = static_cast<int>(until.LeftNs() / kNanosPerMilli);
    if (poll(&waiting, 1, left_ms + 1) > 0) return true;
  }
  return false;
}

void Question::WaitFor(short events) const {
  if (IsReady(events, deadline_)) return;
  Fail("no whole answer within " + std::to_string(timeout_ms_) +
       " ms; is the service that listens there alive?");
}

void Question::Send(std::string_view request) {
  while (!request.empty()) {
    WaitFor(POLLOUT);
    const ssize_t sent = send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent >= 0) request.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) FailAs(errno);
  }
}

std::string Question::Receive() {
  std::string answer;
  std::array<char, kPieceBytes> piece;
  while (true) {
    WaitFor(POLLIN);
    const ssize_t got = recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got == 0) return answer;
    if (got < 0 && errno != EAGAIN && errno != EINTR) FailAs(errno);
    if (got > 0) answer.append(piece.data(), static_cast<std::size_t>(got));
    if (answer.size() > kMaxHttpAnswerBytes) {
      Fail("the answer has more than " + std::to_string(kMaxHttpAnswerBytes) + " bytes");
    }
  }
}

// The number that `text` begins with; `otherwise` without one.
std::size_t NumberOf(std::string_view text, std::size_t otherwise) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? number : otherwise;
}

// What the header `name` (with its colon) announces; `otherwise` where `head` lacks it.
std::size_t Announced(std::string_view head, std::string_view name, std::size_t otherwise) {
  for (auto line = head.find("\r\n"); line != head.npos; line = head.find("\r\n", line + 2)) {
    const std::string_view rest = head.substr(line + 2);
    if (rest.size() >= name.size() && strncasecmp(rest.data(), name.data(), name.size()) == 0) {
      return NumberOf(rest.substr(name.size()), otherwise);
    }
  }
  return otherwise;
}

}  // namespace

std::string HttpGet(const std::string& address, const std::string& path, int timeout_ms) {
  Question question("GET http://" + address + path, timeout_ms);
  question.Connect(ParseHostPort("HTTP", address));
  // 1.0: neither chunks nor a connection that stays.
  question.Send("GET " + path + " HTTP/1.0\r\nHost: " + address + "\r\n\r\n");
  std::string answer = question.Receive();
  const auto head_end = answer.find(kEndOfHead);
  if (!answer.starts_with("HTTP/1.") || head_end == answer.npos) {
    question.Fail("the answer is no HTTP, or cut short");
  }
  const std::string head = answer.substr(0, head_end);
  answer.erase(0, head_end + kEndOfHead.size());
  const std::size_t status =
      NumberOf(std::string_view(head).substr(std::min(head.find(' '), head.size())), 0);
  if (status != 200) {
    std::string shown = answer.substr(0, kMaxShownBytes);
    shown.erase(shown.find_last_not_of('\n') + 1);
    question.Fail("status " + std::to_string(status) + ": " + shown);
  }
  if (answer.size() != Announced(head, "Content-Length:", answer.size())) {
    question.Fail("the answer is cut short");
  }
  return answer;
}

}  // namespace tetrion
