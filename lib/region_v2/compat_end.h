#pragma once

#include <atomic>
#include <cstdint>

#include "lib/core/clock.h"

// What both ends of the compatibility layout share: outcomes, settings, counters.

namespace tetrion {

enum class [[nodiscard]] CompatResult {
  kOk,
  kIdle,      // nothing to do, nothing waited for
  kTimeout,   // the peer lives but did not answer in time
  kPeerLost,  // no heartbeat and no index of the peer moved for peer_timeout_ns
  kStopped,   // the caller's stop flag is set
  kCorrupt,   // the region holds impossible values; give it up
  kSeqError,  // a seq was skipped or repeated: the stream is closed, reset it
  kRefused,   // the host answered ERROR (error_result says why) or lost its answer: reset it
  kBusy,      // the host answered BUSY: ask again
};

// For messages: "ok", "peer_lost", ...
const char* CompatResultName(CompatResult result);

// How a waiting end backs off: it spins (less where spinning has kept the peer from its core), then
// yields, then sleeps on its doorbell in naps that double from `first_nap_ns` to `longest_nap_ns`
// and looks again after each, so that a peer that never rings still works.
struct CompatWaitConfig {
  int spins = -1;   // most polls before the first yield; -1: 4000, or 0 on a machine, or within a
                    // control group, of one core
  int yields = 32;  // polls that give the core away before the first nap
  std::int64_t first_nap_ns = kNanosPerMilli;
  std::int64_t longest_nap_ns = 100 * kNanosPerMilli;
  std::int64_t peer_timeout_ns = 5 * kNanosPerSecond;
  std::int64_t answer_timeout_ns = 10 * kNanosPerSecond;  // longest call of the kernel
};

// Puts an end to sleep; tests put a fake in its place. Called by the end's thread only.
class CompatSleeper {
 public:
  virtual ~CompatSleeper() = default;
  // Sleeps until a wake-up or `timeout_ns` unless the word differs from `expected`.
  virtual void Sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                     std::int64_t timeout_ns) = 0;
  virtual void Yield() = 0;
};

struct CompatEndConfig {
  // Streaming wanted. The kernel without it lays out no stream rings and never asks for a stream;
  // the host without it declines every request.
  bool stream = true;
  // 0: ring on the transition from empty to non-empty. N: once for every N entries, and for the
  // rest when this end begins to wait.
  std::uint32_t doorbell_every = 0;
  CompatWaitConfig wait = {};
  const std::atomic<bool>* stop = nullptr;  // looked at while waiting; may be null
  const Clock* clock = nullptr;             // null: the monotonic clock
  CompatSleeper* sleeper = nullptr;         // null: the shared futex
};

inline const Clock& ClockOf(const CompatEndConfig& config) {
  return config.clock != nullptr ? *config.clock : MonotonicClock::Get();
}

// Counters of one end since its construction. Read by its thread.
struct CompatStats {
  std::uint64_t steps = 0;       // kernel: OBS received after an action; host: actions executed
  std::uint64_t episodes = 0;    // that ended with done
  std::uint64_t truncated = 0;   // host: episodes cut by their step limit (done carries no trace)
  std::uint64_t resets = 0;      // ENV_RESETs that began an episode
  std::uint64_t commands = 0;    // kernel: sent; host: answered
  std::uint64_t errors = 0;      // kernel: ERROR responses received; host: sent
  std::uint64_t seq_errors = 0;  // ACTIONs or OBSs with a wrong seq
  std::uint64_t dropped = 0;     // queued entries and stale responses discarded
  std::uint64_t doorbells = 0;   // times this end rang
  std::uint64_t wakes = 0;       // of these, with a system call for a peer that sleeps or may
  std::uint64_t waits = 0;       // times spinning was not enough
  std::uint64_t sleeps = 0;      // naps in the operating system
};

}  // namespace tetrion
