#pragma once

#include <optional>

namespace tetrion::wire {

// ZeroMQ's threads and the table of its sockets. A socket makes one of its own unless it is given
// one: two threads, which a service with one socket can afford. A program of thousands of clients
// gives all of them the same. Sockets hold it by shared_ptr; the last to go ends it.
//
// Thread roles: sockets of one context may belong to different threads. Its own threads are
// `io_threads`, which move the bytes of all its sockets, and one that closes sockets.
class SocketContext {
 public:
  struct Config {
    // Most sockets at once. A closed one keeps its place until the closing thread has come to it,
    // so that clients who all reopen together need up to two places each.
    int max_sockets = 1023;
    int io_threads = 1;
    // How long the destructor waits for the sockets to leave; nothing: until they have. A socket
    // whose host name is being looked up stays as long as that takes, 10 s and more where the name
    // server does not answer. What is left after the wait ends by itself, on a thread of its own.
    std::optional<int> most_wait_ms;
  };

  // Throws Error(kUsage) for more sockets than ZeroMQ can have, or no thread; kTryAgain for want of
  // files.
  explicit SocketContext(const Config& config);
  // Blocks until the sockets, all closed by now, have left, or for `most_wait_ms`. LINGER is 0, so
  // that they take milliseconds unless a name is being looked up.
  ~SocketContext();
  SocketContext(const SocketContext&) = delete;
  SocketContext& operator=(const SocketContext&) = delete;

  // ZeroMQ's own pointer, for the sockets of lib/wire.
  void* handle() const { return handle_; }

 private:
  void* const handle_;
  const std::optional<int> most_wait_ms_;
};

}  // namespace tetrion::wire
