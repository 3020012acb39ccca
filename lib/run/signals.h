#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "lib/core/mutex.h"

namespace tetrion {

// A service's limit for SignalWatcher: its drain time-out for the rings and once more for goodbyes,
// and a minute for a final checkpoint.
inline std::int64_t HangupLimitMs(double drain_timeout_s) {
  return static_cast<std::int64_t>(2 * drain_timeout_s * 1000) + 60'000;
}

// SIGTERM, SIGINT and SIGHUP as data, for main only: libraries install no handlers.
//
// Construct it before any other thread starts: it blocks the signals in the calling thread, which
// every later thread inherits, and takes them on a thread of its own from a signalfd. So the
// emergency hook is ordinary code, not a signal handler. SIGPIPE is ignored from then on. Child
// processes of fork/exec must call UnblockInChild between the two.
//
//   SIGTERM, SIGINT   first: Draining() turns true (and stays so). Second: the emergency hook, if
//                     any, then _exit(143).
//   SIGHUP            drains, too: the terminal is closed, or the process's supervisor died. Never
//                     counts as first or second, since shell, kernel and systemd may each send one
//                     beside a SIGTERM. But no user may be left to ask again: a process that has
//                     not ended `hangup_limit_ms` later is ended like by a second SIGTERM.
//                     Not watched where it was ignored at the start (nohup).
class SignalWatcher {
 public:
  static constexpr std::int64_t kHangupLimitMs = 7'200'000;  // above any --drain-timeout

  explicit SignalWatcher(std::int64_t hangup_limit_ms = kHangupLimitMs);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

  // Any thread.
  bool Draining() const { return draining_.load(std::memory_order_acquire); }
  // The flag itself, for agents that poll it.
  const std::atomic<bool>& drain_flag() const { return draining_; }
  // Blocks until Draining() or the time-out; returns Draining().
  bool WaitFor(std::int64_t timeout_ms) const;
  // Drains without a signal: a service that ends for a reason of its own.
  void RequestDrain();
  // Runs on the watcher's thread at the second signal, before _exit (also at the hangup limit). It
  // must be quick: it has no deadline but the user's patience. There is one hook at a time: this
  // one replaces the last, and an empty function only removes it. Any thread; does not return once
  // a hook runs: what that hook uses lives on until _exit.
  void SetEmergencyHook(std::function<void()> hook);

  // Restores the default mask before an exec: in a child after fork, or in a process that becomes
  // another program itself. Async-signal-safe.
  static void UnblockInChild();

 private:
  void Run();
  [[noreturn]] void EndAtOnce();

  std::atomic<bool> draining_{false};  // set by Run and RequestDrain; pairs with Draining
  Mutex hook_mu_;
  std::function<void()> hook_ TETRION_GUARDED_BY(hook_mu_);
  const std::int64_t hangup_limit_ms_;
  int signal_fd_ = -1;
  int drain_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace tetrion
