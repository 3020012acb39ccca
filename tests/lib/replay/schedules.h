#pragma once

#include <cstdint>
#include <functional>

#if !defined(__CUDACC__)
#include "tests/support/sim_schedules.h"
#endif

namespace tetrion::testing {

// Runs `body` with a number of its own under each of `seeds` schedules of the simulated device, or
// as often as `device_runs` where a device makes its own.
inline void ForEachSchedule(std::uint64_t seeds, std::uint64_t device_runs,
                            const std::function<void(std::uint64_t)>& body) {
  std::uint64_t run = 0;
#if defined(__CUDACC__)
  while (run < device_runs) body(++run);
#else
  static_cast<void>(device_runs);
  ForEachSimSchedule(seeds, [&] { body(++run); });
#endif
}

}  // namespace tetrion::testing
