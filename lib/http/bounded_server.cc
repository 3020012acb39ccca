#include "lib/http/bounded_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::int64_t kConnectionMs = 5000;  // of a whole connection
constexpr std::int64_t kSilenceMs = 1000;     // of one wait for the peer
// While other connections wait for a thread: until the request is there, and until the answer is
// taken.
constexpr std::int64_t kHurriedRequestMs = 250;
constexpr std::int64_t kHurriedMs = 1000;
constexpr std::int64_t kLookAgainMs = 50;
constexpr std::size_t kMaxRequestBytes = 64 * 1024;  // the library counts its lines' bytes too late

// An accepted socket as the library's stream; every wait ends at the connection's deadline.
class Connection final : public httplib::Stream {
 public:
  Connection(int socket, const std::atomic<bool>& stopping,
             const std::atomic<std::size_t>& others_wait)
      : socket_(socket), stopping_(stopping), others_wait_(others_wait) {}

  bool is_readable() const override { return begin_ < end_ || WaitFor(POLLIN); }
  bool is_writable() const override { return WaitFor(POLLOUT); }

  ssize_t read(char* to, std::size_t bytes) override {
    if (begin_ == end_) {
      if (!WaitFor(POLLIN) || received_ >= kMaxRequestBytes) return -1;
      const ssize_t n = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (n <= 0) return n;
      received_ += static_cast<std::size_t>(n);
      begin_ = 0;
      end_ = static_cast<std::size_t>(n);
    }
    const std::size_t n = std::min(bytes, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, n);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }

  ssize_t write(const char* from, std::size_t bytes) override {
    if (!WaitFor(POLLOUT)) return -1;
    return send(socket_, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  // Nothing is served by address.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    get_remote_ip_and_port(ip, port);
  }
  int socket() const override { return socket_; }

 private:
  bool WaitFor(short events) const {
    const Deadline silence = Deadline::AfterMs(kSilenceMs);
    const Deadline& hurried = events == POLLIN ? hurried_request_ : hurried_;
    while (!stopping_.load(std::memory_order_acquire) && !silence.Passed() && !deadline_.Passed() &&
           (others_wait_.load(std::memory_order_relaxed) == 0 || !hurried.Passed())) {
      pollfd waiting = {socket_, events, 0};
      if (poll(&waiting, 1, kLookAgainMs) > 0) return true;
    }
    return false;
  }

  const int socket_;
  const std::atomic<bool>& stopping_;
  const std::atomic<std::size_t>& others_wait_;
  const Deadline deadline_ = Deadline::AfterMs(kConnectionMs);
  const Deadline hurried_request_ = Deadline::AfterMs(kHurriedRequestMs);
  const Deadline hurried_ = Deadline::AfterMs(kHurriedMs);
  std::size_t received_ = 0;  // bytes
  std::array<char, 4096> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // unread part of buffer_
};

}  // namespace

bool BoundedServer::process_and_close_socket(int socket) {
  Connection connection(socket, stopping_, waiting_);
  bool closed = false;
  const bool served = process_request(connection, /*close_connection=*/true, closed, nullptr);
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return served;
}

void BoundedServer::FillTables(const std::string& path) {
  httplib::detail::BufferStream memory;
  httplib::Stream& stream = memory;
  stream.write("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  bool closed = false;
  process_request(stream, /*close_connection=*/true, closed, nullptr);
}

BoundedPool::BoundedPool(int threads, std::size_t max_queued, std::atomic<std::size_t>& waiting)
    : max_queued_(max_queued), waiting_(waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Serve(); });
}

void BoundedPool::enqueue(std::function<void()> task) {
  {
    MutexLock lock(mu_);
    while (tasks_.size() >= max_queued_) changed_.WaitFor(mu_, kLookAgainMs * kNanosPerMilli);
    tasks_.push_back(std::move(task));
    waiting_.store(tasks_.size(), std::memory_order_relaxed);
  }
  changed_.NotifyAll();
}

void BoundedPool::shutdown() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void BoundedPool::Serve() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(mu_);
      while (tasks_.empty() && !stopping_) changed_.WaitFor(mu_, kLookAgainMs * kNanosPerMilli);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      waiting_.store(tasks_.size(), std::memory_order_relaxed);
    }
    changed_.NotifyAll();
    task();
  }
}

}  // namespace tetrion
