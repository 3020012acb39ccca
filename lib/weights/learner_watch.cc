#include "lib/weights/learner_watch.h"

#include <utility>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLookEveryNs = 5 * kNanosPerMilli;
// While it is there: two system calls, against a worker's thousands of rows.
constexpr std::int64_t kLookAgainEveryNs = 100 * kNanosPerMilli;

}  // namespace

LearnerWatch::LearnerWatch(Config config, const Clock& clock)
    : config_(std::move(config)), clock_(clock) {}

LearnerRegion* LearnerWatch::Find(bool* fresh) {
  const bool found = Look();
  if (fresh != nullptr) *fresh = found;
  return region_ ? &*region_ : nullptr;
}

// Whether this look found a region to take. One that was removed stays until its successor is
// there: its weights serve meanwhile.
bool LearnerWatch::Look() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns < next_look_ns_) return false;
  if (region_ && region_->region().Named()) {
    next_look_ns_ = now_ns + kLookAgainEveryNs;
    return false;
  }
  next_look_ns_ = now_ns + kLookEveryNs;
  std::optional<LearnerRegion> found =
      LearnerRegion::Attach(config_.shm_dir, config_.run_id, config_.spec_hash);
  if (!found) return false;
  region_ = std::move(found);
  return true;
}

}  // namespace tetrion
