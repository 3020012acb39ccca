#pragma once

#include <cstdint>

#include "lib/core/clock.h"

namespace tetrion {

// Adds the seconds since its construction, or since the last call, to a stage of an update.
class StageTimer {
 public:
  StageTimer() : last_ns_(MonotonicClock::Get().NowNs()) {}
  void AddTo(double& seconds) {
    const std::int64_t now_ns = MonotonicClock::Get().NowNs();
    seconds += static_cast<double>(now_ns - last_ns_) / static_cast<double>(kNanosPerSecond);
    last_ns_ = now_ns;
  }

 private:
  std::int64_t last_ns_;
};

}  // namespace tetrion
