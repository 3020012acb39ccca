#include "lib/shm/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "lib/core/clock.h"

namespace tetrion {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

namespace {

constexpr std::int64_t kLookAgainNs = kNanosPerMilli;  // where the kernel refuses to wait

timespec Span(std::int64_t ns) {
  return {.tv_sec = ns / kNanosPerSecond, .tv_nsec = ns % kNanosPerSecond};
}

}  // namespace

FutexResult FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t timeout_ns) {
  if (timeout_ns <= 0) return FutexResult::kTimeout;
  const timespec timeout = Span(timeout_ns);
  // FUTEX_WAIT takes a relative time of CLOCK_MONOTONIC; without FUTEX_PRIVATE_FLAG the key is the
  // file's page, hence the same in every process.
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
  if (rc == 0) return FutexResult::kWoken;
  if (errno == EAGAIN) return FutexResult::kChanged;
  if (errno == ETIMEDOUT) return FutexResult::kTimeout;
  if (errno != EINTR) {
    // EFAULT: memory of a device, mapped by page frames, has no futexes.
    const timespec pause = Span(std::min(timeout_ns, kLookAgainNs));
    nanosleep(&pause, nullptr);
  }
  return FutexResult::kWoken;  // the caller re-checks anyway
}

int FutexWake(std::atomic<std::uint32_t>& word, int count) {
  const long woken = syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

void Bell::WakeSleeper(std::uint32_t seen) {
  // On failure another producer has rung for this arming, or the consumer has disarmed (and looks
  // at its sources) or armed anew (after our fetch_add, hence it has seen what we published).
  if (!block_->word.compare_exchange_strong(seen, seen + 1, std::memory_order_seq_cst)) return;
  block_->wakes.fetch_add(1, std::memory_order_relaxed);
  FutexWake(block_->word, 1);
}

BellResult Bell::Wait(std::uint32_t armed, std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  while (block_->word.load(std::memory_order_acquire) == armed) {
    block_->sleeps.fetch_add(1, std::memory_order_relaxed);
    // Woken means look again: signals and strangers' wake-ups are not rings.
    if (FutexWait(block_->word, armed, deadline.LeftNs()) == FutexResult::kTimeout) break;
  }
  std::uint32_t expected = armed;
  const bool still_armed =
      block_->word.compare_exchange_strong(expected, armed + 1, std::memory_order_seq_cst);
  return still_armed ? BellResult::kTimeout : BellResult::kRung;
}

}  // namespace tetrion
