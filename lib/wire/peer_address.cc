#include "lib/wire/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tetrion::wire {

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  const auto text_of = [&](const void* host, in_port_t port) {
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(address.ss_family, host, text, sizeof(text));
    return text + (" port " + std::to_string(ntohs(port)));
  };
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family == AF_INET) return text_of(&v4.sin_addr, v4.sin_port);
  if (address.ss_family == AF_INET6) return text_of(&v6.sin6_addr, v6.sin6_port);
  return "";
}

}  // namespace tetrion::wire
