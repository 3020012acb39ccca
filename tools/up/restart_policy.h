#pragma once

#include <cstdint>
#include <optional>

#include "lib/core/clock.h"

namespace tetrion {

// How a child process ended.
struct ChildExit {
  bool signalled = false;
  int code = 0;  // exit code, or the signal's number
};

enum class ExitVerdict {
  kDone,     // 0: it drained
  kFatal,    // 2, 74 or 78: starting it again would end the same way, or mend nothing
  kRestart,  // 75, signals, anything else
};
ExitVerdict Judge(const ChildExit& exit);

// When to start a dead child again: delays grow from kFirstDelayMs by kGrowth up to kMaxDelayMs;
// after kTries restarts in a row none. A child that lived kHealthyMs starts afresh. One thread.
class RestartPolicy {
 public:
  static constexpr int kTries = 5;
  static constexpr std::int64_t kFirstDelayMs = 250;
  static constexpr std::int64_t kGrowth = 2;
  static constexpr std::int64_t kMaxDelayMs = 10'000;
  static constexpr std::int64_t kHealthyMs = 60'000;

  explicit RestartPolicy(const Clock& clock) : clock_(clock) {}
  void OnStarted() { started_ns_ = clock_.NowNs(); }
  // The delay before the next start in nanoseconds; nullopt: the restarts are used up.
  std::optional<std::int64_t> OnDeath();
  // Restarts since the child was last healthy.
  int tries() const { return tries_; }
  // Whether it ever lived kHealthyMs, before its last death.
  bool ever_healthy() const { return ever_healthy_; }
  // Whether its last start is less than kHealthyMs ago.
  bool IsYoung() const { return clock_.NowNs() - started_ns_ < kHealthyMs * kNanosPerMilli; }

 private:
  const Clock& clock_;
  std::int64_t started_ns_ = 0;
  int tries_ = 0;
  bool ever_healthy_ = false;
};

}  // namespace tetrion
