#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lib/weights/learner_region.h"
#include "lib/weights/weights_source.h"

namespace tetrion {

// Reads weights from the slots of the learner's region on this host. The worker calls it between
// rows, so that no other thread has to be woken. Of a version that cannot be copied whole, as when
// its slot was spoiled, it makes no more than three copies in 100 ms.
class WeightsReader final : public WeightsSource {
 public:
  using Config = LearnerWatch::Config;
  // `on_attached` gets the learner's bell, on the worker's thread: once, and again whenever the
  // region was made anew; the bell before it must not be rung any more.
  WeightsReader(const Config& config, std::function<void(Bell)> on_attached,
                const Clock& clock = MonotonicClock::Get());

  bool Refresh(WeightsUser& user) override;
  bool LearnerGone() const override { return learner_.Gone(); }
  std::uint64_t refused() const override { return refused_.load(std::memory_order_relaxed); }

 private:
  bool Attached(std::uint32_t version);
  void Read(std::uint32_t newest, WeightsUser& user);
  bool Pausing(std::uint32_t newest) const;

  const std::function<void(Bell)> on_attached_;
  const Clock& clock_;
  LearnerWatch learner_;
  std::optional<WeightsSlotReader> reader_;
  std::vector<std::byte> blob_;
  std::uint32_t torn_version_ = 0;         // that could not be copied whole; 0: none
  std::int64_t next_try_ns_ = 0;           // of torn_version_
  std::atomic<std::uint64_t> refused_{0};  // relaxed
};

}  // namespace tetrion
