#include "lib/weights/weights_reader.h"

#include <utility>

#include "lib/core/counter.h"

namespace tetrion {
namespace {

constexpr std::int64_t kTryAgainNs = 100 * kNanosPerMilli;  // each try copies the blob

}  // namespace

WeightsReader::WeightsReader(const Config& config, std::function<void(Bell)> on_attached,
                             const Clock& clock)
    : on_attached_(std::move(on_attached)), clock_(clock), learner_(config, clock) {}

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
  const std::uint32_t newest = reader_->NewestVersion();
  if (newest > user.version() && !Pausing(newest)) Read(newest, user);
  return !needs_weights || user.version() > 0;
}

// A newer version than the torn one is tried at once.
bool WeightsReader::Pausing(std::uint32_t newest) const {
  return newest == torn_version_ && clock_.NowNs() < next_try_ns_;
}

void WeightsReader::Read(std::uint32_t newest, WeightsUser& user) {
  std::uint32_t version = 0;
  const WeightsRead read = reader_->Read(blob_, version);
  bool refused = false;
  if (read == WeightsRead::kFresh) {
    refused = user.LoadWeights(blob_, version) != LoadResult::kLoaded;
  } else if (read == WeightsRead::kRetry) {
    // Where a newer one has come meanwhile, the trainer was faster than the copies.
    refused = newest != torn_version_ && reader_->NewestVersion() == newest;
    torn_version_ = newest;
    next_try_ns_ = clock_.NowNs() + kTryAgainNs;
  }
  if (refused) AddRelaxed<std::uint64_t>(refused_, 1);
}

}  // namespace tetrion
