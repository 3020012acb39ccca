#include "lib/weights/weights_reader.h"

#include <utility>

#include "lib/core/counter.h"

namespace tetrion {

WeightsReader::WeightsReader(const Config& config, std::function<void(Bell)> on_attached,
                             const Clock& clock)
    : on_attached_(std::move(on_attached)), learner_(config, clock) {}

// `version`: what the policy has, possibly from an earlier region. A region made anew begins
// without weights; the versions that come are higher, since no version is ever used twice.
bool WeightsReader::Attached(std::uint32_t version) {
  bool fresh = false;
  LearnerRegion* learner = learner_.Find(&fresh);
  if (fresh) {
    reader_.emplace(learner->MakeReader(version));
    on_attached_(learner->bell());
  }
  return learner != nullptr;
}

bool WeightsReader::Refresh(WeightsUser& user) {
  const bool needs_weights = user.WeightsBytes() > 0;
  if (!Attached(user.version())) return !needs_weights;
  if (reader_->NewestVersion() > user.version()) {
    std::uint32_t version = 0;
    if (reader_->Read(blob_, version) == WeightsRead::kFresh &&
        user.LoadWeights(blob_, version) != LoadResult::kLoaded) {
      AddRelaxed<std::uint64_t>(refused_, 1);
    }
  }
  return !needs_weights || user.version() > 0;
}

}  // namespace tetrion
