#include "tools/up/training_rate.h"

#include <algorithm>

namespace tetrion {

std::optional<TrainingSpeed> TrainingRate::Look(const RunStatus& status) {
  const Mark now = {.elapsed_s = status.elapsed_s,
                    .updates = status.Learner("updates"),
                    .steps = status.Learner("steps_trained"),
                    .ring_wait_s = status.Actor("wait_ring_s")};
  const bool more = now.steps > last_.steps;
  if (now.steps < last_.steps) {  // another learner, which counts anew
    first_ = start_ = std::nullopt;
  }
  last_ = now;
  if (!more) return std::nullopt;
  if (!first_) first_ = now;
  if (!start_) {
    if (now.elapsed_s >= first_->elapsed_s + kWarmUpS) start_ = now;
    return std::nullopt;
  }
  const double passed_s = now.elapsed_s - start_->elapsed_s;
  const bool enough = passed_s >= kWindowS && now.updates >= start_->updates + kLeastUpdates;
  if (!enough && passed_s < kLongestS) return std::nullopt;
  const double workers_s = passed_s * std::max(1.0, status.Actor("workers"));
  const double waited_s = std::max(0.0, now.ring_wait_s - start_->ring_wait_s);
  return TrainingSpeed{.steps_per_s = (now.steps - start_->steps) / passed_s,
                       .ring_wait = waited_s / workers_s};
}

}  // namespace tetrion
