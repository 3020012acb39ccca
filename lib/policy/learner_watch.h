#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/policy/learner_region.h"

namespace tetrion {

// The learner's region as one worker sees it. The region may come later than the worker: until then
// it is looked for every few milliseconds. Each worker maps it for itself, so there is nothing to
// share. Worker thread only.
class LearnerWatch {
 public:
  struct Config {
    std::string shm_dir;
    std::uint64_t run_id = 0;
    std::uint64_t spec_hash = 0;  // of the learner's region
  };
  explicit LearnerWatch(Config config);

  // The region once it is there, else null. Never blocks; throws Error like LearnerRegion::Attach.
  // `fresh` (may be null) tells whether this very call found it.
  LearnerRegion* Find(bool* fresh = nullptr);
  // A learner was there and its process has ended. One system call.
  bool Gone() const { return region_ && !region_->OwnerAlive(); }

 private:
  const Config config_;
  std::optional<LearnerRegion> region_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace tetrion
