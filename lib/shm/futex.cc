#include "lib/shm/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "lib/core/clock.h"

namespace tetrion {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

FutexResult FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t timeout_ns) {
  if (timeout_ns <= 0) return FutexResult::kTimeout;
  const timespec timeout = {.tv_sec = timeout_ns / kNanosPerSecond,
                            .tv_nsec = timeout_ns % kNanosPerSecond};
  // FUTEX_WAIT takes a relative time of CLOCK_MONOTONIC; without FUTEX_PRIVATE_FLAG the key is the
  // file's page, hence the same in every process.
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
  if (rc == 0) return FutexResult::kWoken;
  if (errno == EAGAIN) return FutexResult::kChanged;
  if (errno == ETIMEDOUT) return FutexResult::kTimeout;
  return FutexResult::kWoken;  // EINTR: the caller re-checks anyway
}

int FutexWake(std::atomic<std::uint32_t>& word, int count) {
  const long woken = syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

}  // namespace tetrion
