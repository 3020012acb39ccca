#pragma once

#include <cstdint>

#include "lib/core/clock.h"
#include "lib/replay/replay_ring.h"
#include "lib/rl/trainer.h"

namespace tetrion::learner {

// A trainer's batches out of the replay: leases the windows, gathers them, closes the lease.
// Trainer thread only.
class ReplaySource final : public BatchSource {
 public:
  explicit ReplaySource(ReplayRing& replay) : replay_(replay) {}

  BatchStatus Next(RowBatch& batch) override {
    ReadLease lease = replay_.OpenLease(batch.windows, batch.steps + 1, kWaitNs);
    if (!lease) return BatchStatus::kNotReady;
    replay_.Gather(lease, batch);
    return BatchStatus::kReady;
  }

 private:
  static constexpr std::int64_t kWaitNs = 50 * kNanosPerMilli;

  ReplayRing& replay_;
};

}  // namespace tetrion::learner
