#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/core/mutex.h"
#include "lib/weights/weights_source.h"

namespace tetrion {

// One version of the weights, whole and verified.
struct WeightsBlob {
  std::uint32_t version = 0;
  std::vector<std::byte> bytes;
};

// Where the workers of a process find the newest weights when the learner's region is on another
// host: the thread that fetches weights puts them here.
//
// Thread roles: one thread puts and tells, any thread reads. A blob lives until the last reader has
// let go of it, so at most two blobs and one a worker are in memory.
class WeightsInbox {
 public:
  enum class [[nodiscard]] PutResult {
    kTaken,
    kWrongHash,  // the bytes are not those of that version
    kNotNewer,   // a version never goes down
  };
  // `hash` is the publisher's WeightsHash.
  PutResult Put(std::uint32_t version, std::vector<std::byte> bytes, std::uint64_t hash)
      TETRION_EXCLUDES(mu_);
  // The learner has published `version`, which may not be here yet.
  void TellPublished(std::uint32_t version);
  // Whether nothing has been heard of the learner for so long that it may be dead.
  void TellLearnerGone(bool gone) { gone_.store(gone, std::memory_order_relaxed); }

  // --- any thread ---
  // Null before the first. Locks for the copy of a pointer.
  std::shared_ptr<const WeightsBlob> Newest() const TETRION_EXCLUDES(mu_);
  // Version of Newest(), 0 before the first; one load.
  std::uint32_t version() const { return version_.load(std::memory_order_acquire); }
  std::uint32_t published() const { return published_.load(std::memory_order_relaxed); }
  bool learner_gone() const { return gone_.load(std::memory_order_relaxed); }

 private:
  mutable Mutex mu_;
  std::shared_ptr<const WeightsBlob> newest_ TETRION_GUARDED_BY(mu_);
  std::atomic<std::uint32_t> version_{0};    // set by Put; pairs with version()
  std::atomic<std::uint32_t> published_{0};  // relaxed, like the next: orders nothing
  std::atomic<bool> gone_{false};
};

// A worker's weights from the inbox. Worker thread only, but for refused().
class RemoteWeights final : public WeightsSource {
 public:
  // `inbox` must outlive the source.
  explicit RemoteWeights(const WeightsInbox& inbox) : inbox_(inbox) {}

  bool Refresh(WeightsUser& user) override;
  bool LearnerGone() const override { return inbox_.learner_gone(); }
  std::uint64_t refused() const override { return refused_.load(std::memory_order_relaxed); }

 private:
  const WeightsInbox& inbox_;
  std::uint32_t tried_ = 0;  // version last offered to the user
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace tetrion
