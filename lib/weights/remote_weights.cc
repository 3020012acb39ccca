#include "lib/weights/remote_weights.h"

#include <algorithm>
#include <utility>

#include "lib/core/counter.h"
#include "lib/weights/weights_slot.h"

namespace tetrion {

WeightsInbox::PutResult WeightsInbox::Put(std::uint32_t version, std::vector<std::byte> bytes,
                                          std::uint64_t hash) {
  if (version <= this->version()) return PutResult::kNotNewer;
  if (WeightsHash(bytes, version) != hash) return PutResult::kWrongHash;
  auto blob = std::make_shared<const WeightsBlob>(WeightsBlob{version, std::move(bytes)});
  TellPublished(version);
  MutexLock lock(mu_);
  newest_.swap(blob);
  version_.store(version, std::memory_order_release);  // pairs with version()
  return PutResult::kTaken;
}

void WeightsInbox::TellPublished(std::uint32_t version) {
  published_.store(std::max(version, published()), std::memory_order_relaxed);
}

std::shared_ptr<const WeightsBlob> WeightsInbox::Newest() const {
  MutexLock lock(mu_);
  return newest_;
}

bool RemoteWeights::Refresh(WeightsUser& user) {
  const bool needs_weights = user.WeightsBytes() > 0;
  if (needs_weights && inbox_.version() > std::max(user.version(), tried_)) {
    const std::shared_ptr<const WeightsBlob> blob = inbox_.Newest();
    tried_ = blob->version;
    if (user.LoadWeights(blob->bytes, blob->version) != LoadResult::kLoaded) {
      AddRelaxed<std::uint64_t>(refused_, 1);
    }
  }
  // Without weights a policy still says in its rows how old it is, as beside the learner.
  if (const std::uint32_t newest = inbox_.published(); !needs_weights && newest > user.version()) {
    static_cast<void>(user.LoadWeights({}, newest));
  }
  return !needs_weights || user.version() > 0;
}

}  // namespace tetrion
