#include "lib/collect/slot_weights.h"

#include <utility>

namespace tetrion {
namespace {

constexpr std::int64_t kLookEveryNs = 5 * kNanosPerMilli;

}  // namespace

SlotWeights::SlotWeights(const Config& config, std::function<void(Bell)> on_attached)
    : config_(config), on_attached_(std::move(on_attached)) {}

bool SlotWeights::Attached() {
  if (region_) return true;
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  if (now_ns < next_look_ns_) return false;
  next_look_ns_ = now_ns + kLookEveryNs;
  region_ = LearnerRegion::Attach(config_.shm_dir, config_.run_id, config_.spec_hash);
  if (!region_) return false;
  reader_.emplace(region_->MakeReader());
  on_attached_(region_->bell());
  return true;
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
