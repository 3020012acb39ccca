#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lib/core/align.h"

namespace tetrion {

// How a thread sleeps on a word of shared memory: the system call, and the bell built on it.

enum class [[nodiscard]] FutexResult {
  kWoken,    // by FutexWake, a signal or spuriously: the caller re-checks its condition
  kChanged,  // the word no longer held `expected`: the caller did not sleep
  kTimeout,
};

// Sleeps until FutexWake on the same word, a signal or `timeout_ns`, provided the word still holds
// `expected`. Works across processes that map the word at different addresses (the shared futex of
// the kernel; std::atomic::wait is process-private). Orders no memory: synchronise on the word.
// Memory that the kernel waits on for nobody, as a device's, makes a sleep of 1 ms at most.
FutexResult FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::int64_t timeout_ns);

// Wakes at most `count` sleepers of the word, in any process. Returns how many. Never blocks.
int FutexWake(std::atomic<std::uint32_t>& word, int count);

// A bell by which any number of producers, in any process, wake one sleeping consumer.
//
// Thread roles: producers publish their data, then Ring. The consumer, when it finds nothing to do:
//   const std::uint32_t armed = bell.Arm();
//   if (everything is still empty) bell.Wait(armed, timeout_ns); else bell.Disarm(armed);
//
// Invariants
//   1. Only the consumer sets the armed bit; a ring or the end of the wait clears it and adds 1 to
//      the count above it, so that the word differs from what the consumer sleeps on.
//   2. A producer enters the kernel at most once per arming, never while the consumer is awake.
//
// No wake-up is lost: Arm and Ring both read-modify-write the same word, so one comes first.
//   Ring first: Arm reads the word after it and thereby acquires what was published before Ring;
//               the re-check between Arm and Wait finds it.
//   Arm first:  Ring sees the armed bit, changes the word and wakes. A consumer that has not fallen
//               asleep yet no longer finds `armed` in the word, so the kernel refuses the sleep.
// A plain load in Ring would not do: it may be served before the producer's publication leaves its
// store buffer (bell_test.cc shows both with a model of all interleavings).
//
// The word is untrusted like everything shared: garbage costs a needless wake-up or a sleep up to
// the deadline.

struct BellBlock {
  alignas(kCacheLinePairBytes) std::atomic<std::uint32_t> word;    // bit 0 armed, above: count
  alignas(kCacheLinePairBytes) std::atomic<std::uint64_t> sleeps;  // waits that entered the kernel
  std::atomic<std::uint64_t> wakes;                                // rings that woke or unarmed
};
static_assert(sizeof(BellBlock) == 2 * kCacheLinePairBytes);
static_assert(offsetof(BellBlock, sleeps) == 128 && offsetof(BellBlock, wakes) == 136);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

enum class [[nodiscard]] BellResult {
  kRung,
  kTimeout,
};

// A view of a BellBlock (zero-filled memory is a valid one), which must outlive it. Copyable.
class Bell {
 public:
  Bell() = default;
  explicit Bell(BellBlock* block) : block_(block) {}
  bool valid() const { return block_ != nullptr; }

  // Producers. One read-modify-write while the consumer is awake, else a wake-up as well.
  void Ring() {
    const std::uint32_t seen = block_->word.fetch_add(0, std::memory_order_seq_cst);
    if ((seen & 1U) != 0) [[unlikely]]
      WakeSleeper(seen);
  }

  // Producers. Rings if a plain look finds the bell armed: free of locked instructions while the
  // consumer is awake, but may miss an arming of the same moment. Only for the calls between two of
  // Ring that the caller's protocol guarantees anyway.
  void RingIfSeenArmed() {
    if ((block_->word.load(std::memory_order_relaxed) & 1U) != 0) [[unlikely]]
      Ring();
  }

  // Consumer. Announces a sleep; returns the value to hand to Wait or Disarm. Re-check every source
  // afterwards.
  std::uint32_t Arm() { return block_->word.fetch_or(1U, std::memory_order_seq_cst) | 1U; }
  // Consumer. Takes the announcement back; a ring in between does no harm.
  void Disarm(std::uint32_t armed) {
    block_->word.compare_exchange_strong(armed, armed + 1, std::memory_order_seq_cst);
  }
  // Consumer. Sleeps until a ring since Arm or `timeout_ns`, disarmed afterwards. Never longer,
  // also with garbage in the word; may return kRung early.
  BellResult Wait(std::uint32_t armed, std::int64_t timeout_ns);

  // Counters for metrics, written by either side: exact only when both are still.
  std::uint64_t SleepsApprox() const { return block_->sleeps.load(std::memory_order_relaxed); }
  std::uint64_t WakesApprox() const { return block_->wakes.load(std::memory_order_relaxed); }

 private:
  void WakeSleeper(std::uint32_t seen);

  BellBlock* block_ = nullptr;
};

}  // namespace tetrion
