#include "lib/wire/input_bound.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/wire/peer_address.h"

namespace tetrion::wire {
namespace {

// A socket's option; nothing for a file that has none.
template <typename Value>
std::optional<Value> OptionOf(int fd, int level, int option) {
  Value value{};
  socklen_t size = sizeof(value);
  if (getsockopt(fd, level, option, &value, &size) != 0) return std::nullopt;
  return value;
}

std::uint64_t CookieOf(int fd) {
  return OptionOf<std::uint64_t>(fd, SOL_SOCKET, SO_COOKIE).value_or(0);
}

std::uint16_t PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

// The port that this end of a TCP socket has; 0 for another file.
std::uint16_t PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? PortOf(address) : 0;
}

}  // namespace

InputBound::InputBound(std::uint16_t port, const Clock& clock)
    : port_(port), clock_(clock), files_(opendir("/proc/self/fd")) {
  if (files_ != nullptr) return;
  throw Error(ExitCode::kTryAgain, std::string("cannot open /proc/self/fd: ") +
                                       std::strerror(errno) + "; raise the open-files limit");
}

void InputBound::LookAt(int fd, std::int64_t now_ns) {
  if (PortOf(fd) != port_) return;
  const std::optional<tcp_info> info = OptionOf<tcp_info>(fd, IPPROTO_TCP, TCP_INFO);
  const std::uint64_t cookie = CookieOf(fd);
  if (!info || cookie == 0) return;
  Connection& connection = connections_[fd];
  if (connection.cookie != cookie) {  // a new one, perhaps with the descriptor of an old one
    connection.cookie = cookie;
    connection.taken = kBytesOfAHandshake;
    connection.looked_ns = now_ns;
  }
  const auto elapsed_ns = static_cast<std::uint64_t>(now_ns - connection.looked_ns);
  connection.received = info->tcpi_bytes_received;
  connection.taken += connection.just_taken + kBytesOfASecond * elapsed_ns / kNanosPerSecond;
  connection.taken = std::min(connection.taken, connection.received);
  connection.just_taken = 0;
  connection.looked_ns = now_ns;
  connection.seen = true;
}

int InputBound::Look(std::uint64_t most_bytes) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_look_ns_) return 0;
  next_look_ns_ = now_ns + kLookEveryNs;
  for (auto& [fd, connection] : connections_) connection.seen = false;
  rewinddir(files_.get());
  while (const dirent* entry = readdir(files_.get())) {
    int fd = -1;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), fd);
    if (fd >= 0) LookAt(fd, now_ns);
  }
  std::erase_if(connections_, [](const auto& entry) { return !entry.second.seen; });
  waiting_bytes_ = 0;
  for (const auto& [fd, connection] : connections_) waiting_bytes_ += connection.Waiting();
  int ended = 0;
  for (; waiting_bytes_ > most_bytes; ++ended) {
    const auto most = std::ranges::max_element(
        connections_, {}, [](const auto& entry) { return entry.second.Waiting(); });
    waiting_bytes_ -= most->second.Waiting();
    HangUp(most->first, most->second);
    connections_.erase(most);
  }
  return ended;
}

// ZeroMQ's thread closes the connection then, and drops what it has of an unfinished message. It
// may have done so already, and another file may have the descriptor.
void InputBound::HangUp(int fd, const Connection& connection) {
  const std::string peer = CookieOf(fd) == connection.cookie ? PeerAddress(fd) : "";
  log::error("hanging up on {}: {} MiB of what it sent wait here to become messages",
             peer.empty() ? "a peer" : peer, connection.Waiting() >> 20);
  if (CookieOf(fd) == connection.cookie) shutdown(fd, SHUT_RDWR);
}

}  // namespace tetrion::wire
