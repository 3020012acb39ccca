#pragma once

#include <optional>

#include "tools/up/run_status.h"

namespace tetrion {

struct TrainingSpeed {
  double steps_per_s = 0;  // environment steps of the batches
  double ring_wait = 0;    // share of the workers' time in which they wait for space in their rings
};

// How fast a run trains, by its status, over a window that begins kWarmUpS after the first batch
// and lasts at least kWindowS and kLeastUpdates updates, but no longer than kLongestS where these
// are slow. The window begins and ends with a status that has new steps, by the coordinator's
// clock. One thread.
class TrainingRate {
 public:
  static constexpr double kWarmUpS = 2;  // the first games are short, memory is touched first
  static constexpr double kWindowS = 3;
  static constexpr double kLeastUpdates = 10;
  static constexpr double kLongestS = 20;

  // Takes a newer status, or the same again. The speed once it is known.
  std::optional<TrainingSpeed> Look(const RunStatus& status);

 private:
  struct Mark {
    double elapsed_s = 0, updates = 0, steps = 0, ring_wait_s = 0;
  };

  Mark last_;
  std::optional<Mark> first_;  // where training began
  std::optional<Mark> start_;  // of the window
};

}  // namespace tetrion
