#pragma once

#include <cstdint>

#include "lib/policy/policy.h"

namespace tetrion {

// Gives a worker's policy, or what else acts, newer weights. Worker thread only, one instance per
// worker.
class WeightsSource {
 public:
  virtual ~WeightsSource() = default;
  // Loads the newest weights into `user` if they are newer than its version. Never blocks;
  // returns false when there are no weights yet at all.
  virtual bool Refresh(WeightsUser& user) = 0;
  // The learner has died, so that a full sink will not empty before it is restarted. Asked while a
  // worker drains into a full sink; one system call.
  virtual bool LearnerGone() const { return false; }
  // Versions that were not used: refused by the user (wrong size or not finite), or not to be
  // copied whole. Any thread.
  virtual std::uint64_t refused() const { return 0; }
};

}  // namespace tetrion
