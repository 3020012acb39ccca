#include "lib/policy/learner_watch.h"

#include <utility>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLookEveryNs = 5 * kNanosPerMilli;

}  // namespace

LearnerWatch::LearnerWatch(Config config) : config_(std::move(config)) {}

LearnerRegion* LearnerWatch::Find(bool* fresh) {
  if (fresh != nullptr) *fresh = false;
  if (region_) return &*region_;
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  if (now_ns < next_look_ns_) return nullptr;
  next_look_ns_ = now_ns + kLookEveryNs;
  region_ = LearnerRegion::Attach(config_.shm_dir, config_.run_id, config_.spec_hash);
  if (!region_) return nullptr;
  if (fresh != nullptr) *fresh = true;
  return &*region_;
}

}  // namespace tetrion
