#pragma once

#include <atomic>
#include <cstdint>

namespace tetrion {

enum class [[nodiscard]] FutexResult {
  kWoken,    // by FutexWake, a signal or spuriously: the caller re-checks its condition
  kChanged,  // the word no longer held `expected`: the caller did not sleep
  kTimeout,
};

// Sleeps until FutexWake on the same word, a signal or `timeout_ns`, provided the word still holds
// `expected`. Works across processes that map the word at different addresses (the shared futex of
// the kernel; std::atomic::wait is process-private). Orders no memory: synchronise on the word.
FutexResult FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t timeout_ns);

// Wakes at most `count` sleepers of the word, in any process. Returns how many. Never blocks.
int FutexWake(std::atomic<std::uint32_t>& word, int count);

}  // namespace tetrion
