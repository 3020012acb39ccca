#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "lib/cuda/sim/simulator.h"

namespace tetrion::testing {

// Forward, reverse and `seeds` random schedules; where the environment names one
// (TETRION_SIM_SEED), that one alone.
inline std::vector<cuda::sim::Schedule> SimSchedules(std::uint64_t seeds) {
  using cuda::sim::Order;
  if (std::getenv(cuda::sim::kScheduleVariable) != nullptr) {
    return {cuda::sim::ScheduleFromEnvironment({})};
  }
  std::vector<cuda::sim::Schedule> schedules = {{Order::kForward, 0}, {Order::kReverse, 0}};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) schedules.push_back({Order::kRandom, seed});
  return schedules;
}

// Runs `body` on a fresh simulator under each schedule, and the work that it leaves behind; stops
// at the first that fails and prints how to repeat it. A finding is a failure unless `body` takes
// it.
inline void ForEachSimSchedule(std::uint64_t seeds, const std::function<void()>& body) {
  for (const cuda::sim::Schedule& schedule : SimSchedules(seeds)) {
    cuda::sim::Simulator::Get().Restart({.schedule = schedule});
    SCOPED_TRACE(::testing::Message() << cuda::sim::kScheduleVariable << '=' << ToText(schedule));
    body();
    if (const auto finding = cuda::sim::Simulator::Get().TakeFinding()) {
      ADD_FAILURE() << "not taken: " << finding->text;
      return;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace tetrion::testing
