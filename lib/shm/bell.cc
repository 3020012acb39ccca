#include "lib/shm/bell.h"

#include "lib/core/clock.h"
#include "lib/shm/futex.h"

namespace tetrion {

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
