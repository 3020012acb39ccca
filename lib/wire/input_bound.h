#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "lib/core/clock.h"

namespace tetrion::wire {

// Bounds what the peers of one listening TCP port make this process hold. ZeroMQ bounds a frame and
// a count of messages, but not a message of endless frames, which nobody gets to see before its
// end. The kernel tells how much a connection has brought, the owner what it took from it as
// messages; the rest waits, in this process's memory or in the kernel's. It is counted as it
// travels: ZeroMQ's memory for many frames of a few bytes is up to 32 times as much.
//
// Thread role: the socket's thread.
class InputBound {
 public:
  // `port`: where the socket listens, on any address of this host. Throws Error(kTryAgain) where
  // the list of this process's files cannot be opened.
  explicit InputBound(std::uint16_t port, const Clock& clock = MonotonicClock::Get());

  // A message of `bytes` in its frames came over the connection with this file descriptor.
  void Took(int fd, std::size_t bytes) { connections_[fd].just_taken += bytes + kBytesOfAMessage; }
  // Hangs up on the connection with the most input that waits, then on the next, until what waits
  // on the others is at most `most_bytes`. Looks every kLookEveryNs at most, and reads the list of
  // this process's files then. Returns on how many it has hung up.
  int Look(std::uint64_t most_bytes);
  // What waited at the last look, without the connections hung up on.
  std::uint64_t waiting_bytes() const { return waiting_bytes_; }

  static constexpr std::int64_t kLookEveryNs = 200 * kNanosPerMilli;

 private:
  // What a connection brings beside the bytes of its messages, at most: heads of two frames and
  // their encryption, a second's heartbeats, and its handshake.
  static constexpr std::uint64_t kBytesOfAMessage = 160, kBytesOfASecond = 64,
                                 kBytesOfAHandshake = 2048;

  struct Connection {
    std::uint64_t cookie = 0;      // the kernel's number of the socket; 0 before the first look
    std::uint64_t received = 0;    // bytes, of the kernel, at the last look
    std::uint64_t taken = 0;       // bytes of `received` that were taken or are of no message
    std::uint64_t just_taken = 0;  // since the last look
    std::int64_t looked_ns = 0;
    bool seen = false;  // in this look
    std::uint64_t Waiting() const { return received - taken; }
  };
  void LookAt(int fd, std::int64_t now_ns);
  void HangUp(int fd, const Connection& connection);

  struct CloseDir {
    void operator()(DIR* dir) const { closedir(dir); }
  };

  const std::uint16_t port_;
  const Clock& clock_;
  const std::unique_ptr<DIR, CloseDir> files_;  // open all the time: later there may be no room
  std::map<int, Connection> connections_;       // by file descriptor
  std::int64_t next_look_ns_ = 0;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace tetrion::wire
