#pragma once

#include <atomic>
#include <cstdint>

#include "lib/region_v2/compat_end.h"
#include "lib/region_v2/compat_ring.h"
#include "lib/shm/bell.h"

namespace tetrion {

// The doorbell of one direction: the word its sleeper sleeps on, which the ringing end counts up,
// and the word in which the sleeper says that it sleeps.
//
// Thread roles: one ringing end (Published, Flush), one sleeping end (Arm, Disarm). Each word has
// one writer, so that neither needs a read-modify-write for the count's sake.
//
// No wake-up is lost. The sleeper stores asleep = 1 by exchange, reads the doorbell word, looks at
// its rings again, and sleeps only while the doorbell word is the one read. The ringing end
// publishes by exchange (CompatRing::Push), then looks at `asleep`. Both exchanges and both looks
// are sequentially consistent: either the sleeper's look finds the entry, or the ringing end's look
// finds asleep = 1; then it changes the word, so that the operating system refuses the sleep, and
// wakes who sleeps already. compat_bell_test.cc walks all interleavings.
class CompatBell {
 public:
  CompatBell() = default;
  CompatBell(std::uint32_t& doorbell, std::uint32_t& asleep)
      : doorbell_(&doorbell),
        asleep_(&asleep),
        count_(CompatWord(doorbell).load(std::memory_order_relaxed)) {}

  // Ringing end, after a push to a stream ring. Rings if the ring was empty, or with `every` = N
  // once for every N entries; the rest waits for Flush. `was_empty` is a look at the consumer's
  // tail that no total order covers, so a sleeper counts as an empty ring.
  void Published(bool was_empty, std::uint32_t every, CompatStats& stats) {
    unheard_ = true;
    if (every > 0) {
      if (++unrung_ >= every) Ring(stats);
    } else if (was_empty) {
      Ring(stats);
    } else {
      WakeSleeper(stats);
    }
  }
  // Ringing end, before it waits itself: rings for entries a batch still holds back.
  void Flush(CompatStats& stats) {
    if (unrung_ > 0) Ring(stats);
  }
  // Ringing end, before it sleeps itself: wakes also a peer that sleeps on the word and does not
  // say so. Such a peer hears of an entry by then at the latest; the loop of two ends that are
  // awake pays no system call for it.
  void Nudge(CompatStats& stats) {
    if (!unheard_) return;
    Count(stats);
    ++stats.wakes;
    FutexWake(word(), 1);
  }
  // Ringing end, after a push to the command or response ring, which has a doorbell word of its
  // own: only wakes a sleeper.
  void WakeSleeper(CompatStats& stats) {
    unheard_ = true;
    if (CompatWord(*asleep_).load(std::memory_order_seq_cst) != 0) [[unlikely]]
      Ring(stats);
  }

  // Sleeping end. Announces the sleep; look at the rings once more, then sleep on word() while it
  // holds the value returned.
  std::uint32_t Arm() {
    CompatWord(*asleep_).exchange(1, std::memory_order_seq_cst);
    return CompatWord(*doorbell_).load(std::memory_order_acquire);
  }
  void Disarm() { CompatWord(*asleep_).store(0, std::memory_order_relaxed); }

  std::atomic<std::uint32_t>& word() const {
    // The futex call wants the atomic itself; it has the word's size and alignment.
    static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(doorbell_);
  }

 private:
  void Count(CompatStats& stats) {
    unrung_ = 0;
    unheard_ = false;
    ++stats.doorbells;
    // Release: an end that reads the new count sees what was published before. Pairs with Arm.
    CompatWord(*doorbell_).store(++count_, std::memory_order_release);
  }
  void Ring(CompatStats& stats) {
    Count(stats);
    unheard_ = true;
    if (CompatWord(*asleep_).load(std::memory_order_seq_cst) == 0) [[likely]]
      return;
    ++stats.wakes;
    unheard_ = false;
    FutexWake(word(), 1);
  }

  std::uint32_t* doorbell_ = nullptr;
  std::uint32_t* asleep_ = nullptr;
  std::uint32_t count_ = 0;   // ringing end: the word's value
  std::uint32_t unrung_ = 0;  // ringing end: entries since the last ring
  bool unheard_ = false;      // ringing end: something published since the last system call
};

}  // namespace tetrion
