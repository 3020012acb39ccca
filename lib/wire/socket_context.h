#pragma once

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
  };

  // Throws Error(kUsage) for more sockets than ZeroMQ can have, or no thread.
  explicit SocketContext(const Config& config);
  // Blocks until the sockets, all closed by now, have left (milliseconds: LINGER is 0).
  ~SocketContext();
  SocketContext(const SocketContext&) = delete;
  SocketContext& operator=(const SocketContext&) = delete;

  // ZeroMQ's own pointer, for the sockets of lib/wire.
  void* handle() const { return handle_; }

 private:
  void* const handle_;
};

}  // namespace tetrion::wire
