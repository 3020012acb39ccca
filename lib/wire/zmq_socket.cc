#include "lib/wire/zmq_socket.h"

#include <cerrno>
#include <charconv>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/wire/socket.h"

namespace tetrion::wire {

void SetOption(void* socket, int option, int value) {
  TETRION_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0,
                "ZeroMQ refused a socket option");
}

void SetMaxMessageBytes(void* socket, std::int64_t bytes) {
  TETRION_CHECK(zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof(bytes)) == 0,
                "ZeroMQ refused a socket option");
}

void AllowIpv6(void* socket, const std::string& endpoint) {
  if (endpoint.starts_with("tcp://[")) SetOption(socket, ZMQ_IPV6, 1);
}

std::string BoundEndpoint(void* socket) {
  char bound[256];
  std::size_t bytes = sizeof(bound);
  TETRION_CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &bytes) == 0,
                "a bound socket has an endpoint");
  return bound;
}

Socket::Socket(int type, std::shared_ptr<SocketContext> given)
    : context(given != nullptr ? std::move(given)
                               : std::make_shared<SocketContext>(SocketContext::Config{})),
      socket(zmq_socket(context->handle(), type)) {
  if (socket != nullptr) return;
  throw Error(ExitCode::kTryAgain, std::string("cannot open a socket: ") + zmq_strerror(errno) +
                                       "; raise the open-files limit");
}

Socket::~Socket() {
  zmq_close(socket);
}

std::size_t SkipRest(Frame& frame, void* socket) {
  std::size_t bytes = 0;
  while (frame.More() && frame.Receive(socket)) bytes += frame.size();
  return bytes;
}

std::uint16_t PortOf(const std::string& endpoint) {
  std::uint16_t port = 0;
  if (!endpoint.starts_with("tcp://")) return port;
  const char* digits = endpoint.data() + endpoint.rfind(':') + 1;
  std::from_chars(digits, endpoint.data() + endpoint.size(), port);
  return port;
}

Readiness PollSocket(void* socket, int timeout_ms, int extra_fd) {
  zmq_pollitem_t items[2] = {{socket, 0, ZMQ_POLLIN, 0}, {nullptr, extra_fd, ZMQ_POLLIN, 0}};
  // Without a socket ZeroMQ would take the item for descriptor 0.
  const bool has_socket = socket != nullptr;
  const int ready = zmq_poll(has_socket ? items : items + 1,
                             (has_socket ? 1 : 0) + (extra_fd >= 0 ? 1 : 0), timeout_ms);
  if (ready <= 0) return {};  // time-out, or a signal: the caller's loop comes back
  return {items[0].revents != 0, extra_fd >= 0 && items[1].revents != 0};
}

}  // namespace tetrion::wire
