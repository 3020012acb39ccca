#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace tetrion {

// SIGTERM and SIGINT as data, for main only: libraries install no handlers.
//
// Construct it before any other thread starts: it blocks both signals in the calling thread, which
// every later thread inherits, and takes them on a thread of its own from a signalfd. So the
// emergency hook is ordinary code, not a signal handler. SIGPIPE is ignored from then on.
//
// First signal: Draining() turns true, drain_fd() readable (for ever). Second: the emergency hook,
// if any, then _exit(143). Child processes of fork/exec must call UnblockInChild between the two.
class SignalWatcher {
 public:
  SignalWatcher();
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Any thread.
  bool Draining() const { return draining_.load(std::memory_order_acquire); }
  // The flag itself, for agents that poll it.
  const std::atomic<bool>& drain_flag() const { return draining_; }
  // Readable after the first signal; never read it. For poll loops.
  int drain_fd() const { return drain_fd_; }
  // Blocks until the first signal or the time-out; returns Draining().
  bool WaitFor(std::int64_t timeout_ms) const;
  // As if the first signal had come: a service that ends for a reason of its own.
  void RequestDrain();
  // Runs on the watcher's thread at the second signal, before _exit. It must be quick: it has no
  // deadline but the user's patience. Set it before signals can come.
  void SetEmergencyHook(std::function<void()> hook);

  // Restores the default mask in a child between fork and exec. Async-signal-safe.
  static void UnblockInChild();

 private:
  void Run();

  std::atomic<bool> draining_{false};  // set by Run and RequestDrain; pairs with Draining
  std::atomic<bool> hook_set_{false};  // published after hook_; pairs with the load in Run
  std::function<void()> hook_;
  int signal_fd_ = -1;
  int drain_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace tetrion
