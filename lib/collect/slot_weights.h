#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/collect/weights_source.h"
#include "lib/policy/learner_watch.h"

namespace tetrion {

// Weights out of the learner's region on this host, read from the slots between rows, so that there
// is nobody to wake.
class SlotWeights final : public WeightsSource {
 public:
  using Config = LearnerWatch::Config;
  // `on_attached` gets the learner's bell once, on the worker's thread.
  SlotWeights(const Config& config, std::function<void(Bell)> on_attached);

  bool Refresh(Policy& policy) override;
  bool LearnerGone() const override { return learner_.Gone(); }
  std::uint32_t NewestVersion() const override;
  // Blobs that the policy refused (wrong size or not finite); each is skipped.
  std::uint64_t refused() const { return refused_; }

 private:
  bool Attached();

  const std::function<void(Bell)> on_attached_;
  LearnerWatch learner_;
  std::optional<WeightsSlotReader> reader_;
  std::vector<std::byte> blob_;
  std::uint64_t refused_ = 0;
};

}  // namespace tetrion
