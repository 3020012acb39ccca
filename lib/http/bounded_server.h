#pragma once

// For http_endpoint.cc only: the HTTP library stays behind that file.
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/mutex.h"

namespace tetrion {

// The library's server with bounds it lacks: a time limit for a whole connection, whatever the peer
// drips, a shorter one while others wait, a limit of what a request may bring, one request each,
// and connections under way that end at once when the server stops.
class BoundedServer final : public httplib::Server {
 public:
  // From then on every connection under way ends within 50 ms. Any thread.
  void CutConnections() { stopping_.store(true, std::memory_order_release); }
  // Serves `path` without a peer. The library keeps tables that its first request fills: this does
  // it before threads share them. Before the server listens, on the thread that starts it.
  void FillTables(const std::string& path);
  // How many connections wait in the kernel to be accepted. After a successful bind_to_port.
  void SetBacklog(int connections) { ::listen(svr_sock_, connections); }
  // Where the pool counts the connections that no thread serves yet.
  std::atomic<std::size_t>& waiting() { return waiting_; }

 private:
  // On a thread of the pool; owns the socket.
  bool process_and_close_socket(int socket) override;

  std::atomic<bool> stopping_{false};  // pairs with the loads in a connection's waits
  std::atomic<std::size_t> waiting_{0};
};

// A fixed number of threads behind a bounded queue: with the queue full, accepting waits, and
// further peers wait in the kernel's backlog. No wait is long, as every connection has its limit.
class BoundedPool final : public httplib::TaskQueue {
 public:
  // `waiting` follows the queue's length and outlives the pool.
  BoundedPool(int threads, std::size_t max_queued, std::atomic<std::size_t>& waiting);
  void enqueue(std::function<void()> task) override TETRION_EXCLUDES(mu_);
  // Blocks until what is queued has been served.
  void shutdown() override TETRION_EXCLUDES(mu_);

 private:
  void Serve() TETRION_EXCLUDES(mu_);

  const std::size_t max_queued_;
  std::atomic<std::size_t>& waiting_;
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ TETRION_GUARDED_BY(mu_);
  bool stopping_ TETRION_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tetrion
