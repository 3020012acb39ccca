#include "lib/core/clock.h"

#include <ctime>

namespace tetrion {

std::int64_t MonotonicClock::NowNs() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

const MonotonicClock& MonotonicClock::Get() {
  static const MonotonicClock clock;
  return clock;
}

}  // namespace tetrion
