#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "lib/core/clock.h"

namespace tetrion::wire {

// Bounds what the peers of one listening TCP port make this process hold. ZeroMQ bounds a frame and
// a count of messages, but not a message of endless frames, which nobody gets to see before its
// end. The kernel tells how much a connection has brought; what was taken from it as messages is
// told by the owner; the rest lies in this process's memory, or in the kernel's.
//
// Thread role: the socket's thread.
class InputBound {
 public:
  // `port`: where the socket listens, on any address of this host.
  explicit InputBound(std::uint16_t port, const Clock& clock = MonotonicClock::Get())
      : port_(port), clock_(clock) {}

  // A message of `bytes` in its frames came over the connection with this file descriptor.
  void Took(int fd, std::size_t bytes);
  // Hangs up on the connection with the most input that waits, then on the next, until what waits
  // on the others is at most `most_bytes`. Looks every kLookEveryNs at most, and reads the list of
  // this process's files then. Returns on how many it has hung up.
  int Look(std::uint64_t most_bytes);
  // What waited at the last look, without the connections hung up on.
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }

  static constexpr std::int64_t kLookEveryNs = 200 * kNanosPerMilli;

 private:
  struct Connection {
    std::uint64_t peer = 0;      // a hash of its address: another one is another connection
    std::uint64_t received = 0;  // bytes, of the kernel, at the last look
    std::uint64_t taken = 0;     // bytes of `received` that were taken or are none of a message
    std::int64_t looked_ns = 0;
    bool seen = false;  // in this look
    std::uint64_t Waiting() const { return received - taken; }
  };
  void LookAt(int fd, std::int64_t now_ns);

  const std::uint16_t port_;
  const Clock& clock_;
  std::map<int, Connection> connections_;  // by file descriptor
  std::int64_t next_look_ns_ = 0;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace tetrion::wire
