#pragma once

#include <atomic>
#include <cstdint>

namespace tetrion {

inline constexpr std::int64_t kNanosPerMilli = 1'000'000;
inline constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

// Monotonic time for leases, deadlines and rates. Wall time is for logs and run names only.
// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start; never goes back (CLOCK_MONOTONIC).
  virtual std::int64_t NowNs() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  std::int64_t NowNs() const override;
  // The process-wide instance.
  static const MonotonicClock& Get();
};

// Advances only when told: makes lease and back-off logic deterministic in tests.
class FakeClock final : public Clock {
 public:
  std::int64_t NowNs() const override { return now_ns_.load(std::memory_order_relaxed); }
  void AdvanceNs(std::int64_t delta_ns) { now_ns_.fetch_add(delta_ns, std::memory_order_relaxed); }
  void AdvanceMs(std::int64_t delta_ms) { AdvanceNs(delta_ms * kNanosPerMilli); }

 private:
  std::atomic<std::int64_t> now_ns_{kNanosPerSecond};
};

// A point in time by which a wait must return.
class Deadline {
 public:
  Deadline(const Clock& clock, std::int64_t timeout_ns)
      : clock_(&clock), at_ns_(clock.NowNs() + timeout_ns) {}
  static Deadline AfterMs(std::int64_t timeout_ms) {
    return Deadline(MonotonicClock::Get(), timeout_ms * kNanosPerMilli);
  }
  bool Passed() const { return clock_->NowNs() >= at_ns_; }
  // Nanoseconds left, never negative.
  std::int64_t LeftNs() const {
    const std::int64_t left_ns = at_ns_ - clock_->NowNs();
    return left_ns > 0 ? left_ns : 0;
  }

 private:
  const Clock* clock_;
  std::int64_t at_ns_;
};

}  // namespace tetrion
