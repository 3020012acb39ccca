#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/collect/weights_source.h"
#include "lib/core/clock.h"
#include "lib/policy/learner_region.h"

namespace tetrion {

// Weights out of the learner's region on this host. The region may come later than the worker:
// until then it is looked for every few milliseconds. Each worker maps the region for itself and
// reads the slots between rows, so there is nothing to share and nobody to wake.
class SlotWeights final : public WeightsSource {
 public:
  struct Config {
    std::string shm_dir;
    std::uint64_t run_id = 0;
    std::uint64_t spec_hash = 0;  // of the learner's region
  };
  // `on_attached` gets the learner's bell once, on the worker's thread.
  SlotWeights(const Config& config, std::function<void(Bell)> on_attached);

  bool Refresh(Policy& policy) override;
  bool LearnerGone() const override { return region_ && !region_->OwnerAlive(); }
  std::uint32_t NewestVersion() const override;
  // Blobs that the policy refused (wrong size or not finite); each is skipped.
  std::uint64_t refused() const { return refused_; }

 private:
  bool Attached();

  const Config config_;
  const std::function<void(Bell)> on_attached_;
  std::optional<LearnerRegion> region_;
  std::optional<WeightsSlotReader> reader_;
  std::int64_t next_look_ns_ = 0;
  std::vector<std::byte> blob_;
  std::uint64_t refused_ = 0;
};

}  // namespace tetrion
