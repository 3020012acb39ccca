#include "lib/run/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

sigset_t WatchedSignals(bool with_hangup) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (with_hangup) sigaddset(&set, SIGHUP);
  return set;
}

bool IsIgnored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Makes an eventfd readable.
void Ring(int fd) {
  const std::uint64_t one = 1;
  const ssize_t written = write(fd, &one, sizeof one);
  TETRION_CHECK(written == sizeof one || errno == EAGAIN, "eventfd refused a write");
}

}  // namespace

SignalWatcher::SignalWatcher(std::int64_t hangup_limit_ms) : hangup_limit_ms_(hangup_limit_ms) {
  const sigset_t watched = WatchedSignals(/*with_hangup=*/!IsIgnored(SIGHUP));
  TETRION_CHECK(pthread_sigmask(SIG_BLOCK, &watched, nullptr) == 0, "cannot block signals");
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond ulimit -f fails as one on a full disk
  signal_fd_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  drain_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signal_fd_ < 0 || drain_fd_ < 0 || stop_fd_ < 0) {
    throw Error(ExitCode::kTryAgain, "no file descriptors left for signals; raise ulimit -n");
  }
  thread_ = std::thread([this] { Run(); });
}

SignalWatcher::~SignalWatcher() {
  Ring(stop_fd_);
  thread_.join();
  close(signal_fd_);
  close(drain_fd_);
  close(stop_fd_);
}

bool SignalWatcher::WaitFor(std::int64_t timeout_ms) const {
  pollfd drained = {drain_fd_, POLLIN, 0};
  poll(&drained, 1, static_cast<int>(timeout_ms));
  return Draining();
}

void SignalWatcher::RequestDrain() {
  draining_.store(true, std::memory_order_release);
  Ring(drain_fd_);
}

void SignalWatcher::SetEmergencyHook(std::function<void()> hook) {
  MutexLock lock(hook_mu_);
  hook_ = std::move(hook);
}

void SignalWatcher::UnblockInChild() {
  const sigset_t watched = WatchedSignals(/*with_hangup=*/true);
  sigprocmask(SIG_UNBLOCK, &watched, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
}

void SignalWatcher::EndAtOnce() {
  MutexLock lock(hook_mu_);
  if (hook_) hook_();
  _exit(static_cast<int>(ExitCode::kTerminated));
}

void SignalWatcher::Run() {
  pthread_setname_np(pthread_self(), "signals");
  constexpr std::int64_t kLookAgainMs = 1000;
  const int wait_ms = static_cast<int>(std::min(kLookAgainMs, hangup_limit_ms_));
  int asked = 0;
  std::optional<Deadline> hangup;
  while (true) {
    pollfd fds[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    poll(fds, 2, wait_ms);
    if ((fds[1].revents & POLLIN) != 0) return;
    if (hangup && hangup->Passed()) EndAtOnce();
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof info) != sizeof info) continue;
    if (info.ssi_signo == SIGHUP) {
      if (!hangup) hangup = Deadline::AfterMs(hangup_limit_ms_);
    } else if (++asked == 2) {
      EndAtOnce();
    }
    RequestDrain();
  }
}

}  // namespace tetrion
