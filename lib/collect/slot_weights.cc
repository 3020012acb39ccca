#include "lib/collect/slot_weights.h"

#include <utility>

namespace tetrion {

SlotWeights::SlotWeights(const Config& config, std::function<void(Bell)> on_attached)
    : on_attached_(std::move(on_attached)), learner_(config) {}

bool SlotWeights::Attached() {
  bool fresh = false;
  LearnerRegion* learner = learner_.Find(&fresh);
  if (fresh) {
    reader_.emplace(learner->MakeReader());
    on_attached_(learner->bell());
  }
  return learner != nullptr;
}

bool SlotWeights::Refresh(Policy& policy) {
  const bool needs_weights = policy.WeightsBytes() > 0;
  if (!Attached()) return !needs_weights;
  if (reader_->NewestVersion() != policy.version()) {
    std::uint32_t version = 0;
    if (reader_->Read(blob_, version) == WeightsRead::kFresh &&
        policy.LoadWeights(blob_, version) != LoadResult::kLoaded) {
      ++refused_;
    }
  }
  return !needs_weights || policy.version() > 0;
}

std::uint32_t SlotWeights::NewestVersion() const {
  return reader_ ? reader_->NewestVersion() : 0;
}

}  // namespace tetrion
