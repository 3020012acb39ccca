#pragma once

#include <zmq.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/wire/socket_context.h"

namespace tetrion::wire {

// What the sockets of lib/wire share of ZeroMQ; included by their sources alone.

struct Readiness;

// CHECKs that ZeroMQ takes it.
void SetOption(void* socket, int option, int value);
void SetMaxMessageBytes(void* socket, std::int64_t bytes);
// Lets the socket bind or connect to an IPv6 address, which stands in brackets. Not for others:
// with it, every IPv4 address of the machine is told as one of IPv6.
void AllowIpv6(void* socket, const std::string& endpoint);
// What a bound socket listens at, with the chosen port.
std::string BoundEndpoint(void* socket);

// A socket and the context it lives in, closed in the right order.
struct Socket {
  // Throws Error(kTryAgain) when no socket is left. `given` null: a context of its own.
  Socket(int type, std::shared_ptr<SocketContext> given);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  const std::shared_ptr<SocketContext> context;
  void* const socket;
};

// One frame of a message, with the memory that the engine received it into.
class Frame {
 public:
  Frame() { zmq_msg_init(&message_); }
  ~Frame() { zmq_msg_close(&message_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Never blocks; false when no frame waits.
  bool Receive(void* socket) { return zmq_msg_recv(&message_, socket, ZMQ_DONTWAIT) >= 0; }
  bool More() { return zmq_msg_more(&message_) != 0; }
  // The file descriptor of the connection that a received frame came over; when that has ended, the
  // descriptor may be another file's. -1 where ZeroMQ does not know.
  int Connection() { return zmq_msg_get(&message_, ZMQ_SRCFD); }
  std::size_t size() { return zmq_msg_size(&message_); }
  const std::byte* data() { return static_cast<const std::byte*>(zmq_msg_data(&message_)); }
  std::span<const std::byte> bytes() { return {data(), size()}; }

 private:
  zmq_msg_t message_;
};

// Drops the frames of a message that has more of them than ours; returns their bytes.
std::size_t SkipRest(Frame& frame, void* socket);
// The port of "tcp://host:port"; 0 for another kind of endpoint.
std::uint16_t PortOf(const std::string& endpoint);

// Blocks until a message is there, `extra_fd` (if >= 0) is readable, or `timeout_ms` has passed.
// `socket` may be null: no message comes.
Readiness PollSocket(void* socket, int timeout_ms, int extra_fd);

}  // namespace tetrion::wire
