#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "lib/core/clock.h"
#include "lib/replay/gate.h"
#include "lib/replay/rows.h"
#include "lib/rl/trainer.h"

namespace tetrion::learner {

// A trainer's batches out of the replay: `windows` windows of `steps` transitions, leased. Trainer
// thread, End any thread. Gate and rows outlive the source and its batches.
class ReplaySource final : public BatchSource {
 public:
  ReplaySource(ReplayGate& gate, ReplayRows& rows, int steps, int windows)
      : gate_(gate), rows_(rows), steps_(steps), windows_(windows) {}

  TrainBatch Next() override {
    ReadLease lease = gate_.OpenLease(windows_, steps_ + 1, kWaitNs);
    if (!lease) return TrainBatch(BatchStatus::kNotReady);
    return {std::move(lease), rows_};
  }

  bool Ends() const override { return ends_.load(std::memory_order_relaxed); }
  // So that an update of many passes is over soon.
  void End() { ends_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::int64_t kWaitNs = 50 * kNanosPerMilli;

  ReplayGate& gate_;
  ReplayRows& rows_;
  const int steps_;                // T
  const int windows_;              // W
  std::atomic<bool> ends_{false};  // set by End; pairs with Ends
};

}  // namespace tetrion::learner
