#include "lib/wire/input_bound.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "lib/core/log.h"

namespace tetrion::wire {
namespace {

// What a connection's input has beside the bytes of its messages, at most: heads of two frames and
// their encryption, and a second's heartbeats.
constexpr std::uint64_t kBytesOfAMessage = 160;
constexpr std::uint64_t kBytesOfASecond = 64;

using Address = sockaddr_storage;

// Of the near or the far end of a connection; nothing for a file that has none.
template <int (*kName)(int, sockaddr*, socklen_t*)>
std::optional<Address> AddressOf(int fd) {
  Address address{};
  socklen_t size = sizeof(address);
  if (kName(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  return address;
}

std::uint16_t PortOf(const Address& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

std::string TextOf(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
              sizeof(text));
  }
  return std::string(text) + " port " + std::to_string(PortOf(address));
}

std::uint64_t HashOf(const Address& address) {
  const std::string_view bytes(reinterpret_cast<const char*>(&address), sizeof(address));
  return std::hash<std::string_view>()(bytes);
}

// Bytes that the kernel has received for a connection; nothing for what is no TCP connection.
std::optional<std::uint64_t> ReceivedBytes(int fd) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
    return std::nullopt;
  }
  return info.tcpi_bytes_received;
}

}  // namespace

void InputBound::Took(int fd, std::size_t bytes) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;  // younger than the last look
  found->second.taken += bytes + kBytesOfAMessage;
}

void InputBound::LookAt(int fd, std::int64_t now_ns) {
  const std::optional<Address> near = AddressOf<getsockname>(fd);
  if (!near || PortOf(*near) != port_) return;
  const std::optional<Address> far = AddressOf<getpeername>(fd);
  const std::optional<std::uint64_t> received = ReceivedBytes(fd);
  if (!far || !received) return;  // it listens, or has just ended
  const std::uint64_t peer = HashOf(*far);
  Connection& connection = connections_[fd];
  if (connection.peer != peer) {
    // What it has brought before the first look counts as taken: some of it was.
    connection = {.peer = peer, .taken = *received, .looked_ns = now_ns};
  }
  connection.seen = true;
  connection.received = *received;
  connection.taken +=
      kBytesOfASecond * static_cast<std::uint64_t>(now_ns - connection.looked_ns) / kNanosPerSecond;
  connection.taken = std::min(connection.taken, connection.received);
  connection.looked_ns = now_ns;
}

int InputBound::Look(std::uint64_t most_bytes) {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_look_ns_) return 0;
  next_look_ns_ = now_ns + kLookEveryNs;
  for (auto& [fd, connection] : connections_) connection.seen = false;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string name = entry.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    LookAt(fd, now_ns);
  }
  std::erase_if(connections_, [](const auto& entry) { return !entry.second.seen; });
  waiting_bytes_ = 0;
  for (const auto& [fd, connection] : connections_) waiting_bytes_ += connection.Waiting();
  int ended = 0;
  for (; waiting_bytes_ > most_bytes; ++ended) {
    const auto most = std::ranges::max_element(
        connections_, {}, [](const auto& entry) { return entry.second.Waiting(); });
    const std::uint64_t bytes = most->second.Waiting();
    log::error("hanging up on {}: {} MiB of what it sent wait here to become messages",
               TextOf(AddressOf<getpeername>(most->first).value_or(Address{})), bytes >> 20);
    // ZeroMQ's thread closes it, and drops what it has of the unfinished message.
    shutdown(most->first, SHUT_RDWR);
    waiting_bytes_ -= bytes;
    connections_.erase(most);
  }
  return ended;
}

}  // namespace tetrion::wire
