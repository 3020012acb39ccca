#pragma once

#include <cstdint>

#include "lib/core/clock.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/rl/trainer.h"

namespace tetrion::learner {

// A trainer's batches out of the replay: leases the windows, gathers them, closes the lease.
// Trainer thread only.
class ReplaySource final : public BatchSource {
 public:
  ReplaySource(ReplayGate& gate, const HostRows& rows) : gate_(gate), rows_(rows) {}

  BatchStatus Next(RowBatch& batch) override {
    const ReadLease lease = gate_.OpenLease(batch.windows, batch.steps + 1, kWaitNs);
    if (!lease) return BatchStatus::kNotReady;
    rows_.Gather(lease, 0, batch.lanes,
                 {.record = batch.record.data(),
                  .action = batch.action.data(),
                  .log_prob = batch.log_prob.data(),
                  .mask = batch.mask.empty() ? nullptr : batch.mask.data(),
                  .reward = batch.reward.data(),
                  .flags = batch.flags.data(),
                  .cont = batch.cont.data()});
    rows_.GatherVersions(lease, batch.policy_version.data());
    return BatchStatus::kReady;
  }

 private:
  static constexpr std::int64_t kWaitNs = 50 * kNanosPerMilli;

  ReplayGate& gate_;
  const HostRows& rows_;
};

}  // namespace tetrion::learner
