#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/clock.h"
#include "lib/weights/learner_region.h"

namespace tetrion {

// The learner's region as one worker sees it. The region may come later than the worker, and it may
// be removed and made anew (by a clean-up while the learner was down): the watch looks every few
// milliseconds until it is there, and ten times a second whether the path still names it. Each
// worker maps it for itself, so there is nothing to share. Worker thread only.
class LearnerWatch {
 public:
  struct Config {
    std::string shm_dir;
    std::uint64_t run_id = 0;
    std::uint64_t spec_hash = 0;  // of the learner's region
  };
  explicit LearnerWatch(Config config, const Clock& clock = MonotonicClock::Get());

  // The region once it is there, else null. Never blocks; throws Error like LearnerRegion::Attach.
  // `fresh` (may be null) tells whether this very call found it, for the first time or as the
  // successor of one that was removed. Then everything made from an earlier one (bells, readers)
  // points at memory that is gone, and must be replaced before it is used.
  LearnerRegion* Find(bool* fresh = nullptr);
  // A learner was there and its process has ended. One system call.
  bool Gone() const { return region_ && !region_->OwnerAlive(); }

 private:
  bool Look();

  const Config config_;
  const Clock& clock_;
  std::optional<LearnerRegion> region_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace tetrion
