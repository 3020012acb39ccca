#pragma once

#include <cstdint>

#include "lib/core/clock.h"

namespace tetrion::learner {

// A counter's rate between heartbeats. Link thread only.
class RateMeter {
 public:
  double PerSecond(std::uint64_t counter) {
    const std::int64_t now_ns = MonotonicClock::Get().NowNs();
    const double seconds = static_cast<double>(now_ns - last_ns_) * 1e-9;
    const double rate = last_ns_ == 0 ? 0.0 : static_cast<double>(counter - last_) / seconds;
    last_ = counter;
    last_ns_ = now_ns;
    return rate;
  }

 private:
  std::uint64_t last_ = 0;
  std::int64_t last_ns_ = 0;
};

}  // namespace tetrion::learner
