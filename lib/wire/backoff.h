#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/core/clock.h"
#include "lib/core/philox.h"

namespace tetrion::wire {

// When the next attempt at something that failed is due: delays grow by half from `first_ns` to
// `max_ns`, each drawn from +-25 % so that peers cut off together do not come back together. Pure:
// never sleeps. One thread.
class Backoff {
 public:
  struct Config {
    std::int64_t first_ns = 100 * kNanosPerMilli;
    std::int64_t max_ns = 3 * kNanosPerSecond;
    // Differs between peers, also of other containers, where process ids are the same.
    std::uint64_t seed = 0;
  };

  Backoff(const Clock& clock, const Config& config)
      : clock_(clock), config_(config), base_ns_(config.first_ns) {}

  // True when an attempt may be made now; the following one is then due a delay later.
  bool TryNow() {
    if (clock_.NowNs() < due_ns_) return false;
    const PhiloxBlock draw = PhiloxDraw(config_.seed, attempts_++, 0, PhiloxPurpose::kSampler);
    const double jitter = 0.75 + 0.5 * UnitDraw(draw.word[0]);
    due_ns_ = clock_.NowNs() + static_cast<std::int64_t>(static_cast<double>(base_ns_) * jitter);
    base_ns_ = std::min(base_ns_ + base_ns_ / 2, config_.max_ns);
    return true;
  }
  // Success: the next failure starts from the shortest delay, at once.
  void Reset() {
    base_ns_ = config_.first_ns;
    due_ns_ = 0;
  }
  // Nanoseconds until TryNow succeeds, never negative.
  std::int64_t LeftNs() const { return std::max<std::int64_t>(0, due_ns_ - clock_.NowNs()); }

 private:
  const Clock& clock_;
  const Config config_;
  std::int64_t base_ns_;
  std::int64_t due_ns_ = 0;
  std::uint64_t attempts_ = 0;
};

}  // namespace tetrion::wire
