#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/rl/trainer.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion::testing {

// Windows of random states and legal actions; every sixth row of a lane ends an episode.
class RandomSource : public BatchSource {
 public:
  RandomSource(const EnvSpec& env, int steps, int lanes)
      : env_(env), steps_(steps), lanes_(lanes), rows_(RowsOf(env, lanes), 1, kCapacity) {}

  static RowSpec RowsOf(const EnvSpec& env, int lanes) {
    return {.record_bytes = env.obs.record_bytes,
            .lanes = static_cast<std::uint32_t>(lanes),
            .has_mask = env.action.has_mask};
  }

  TrainBatch Next() override {
    ++batches_;
    gate_.BeginGeneration(0);
    for (int t = 0; t <= steps_; ++t) {
      const Chunk chunk = gate_.Acquire(0, 1, 0);
      RowView row(rows_.layout(), rows_.Row(0, chunk.first));
      row.header->policy_version = 0;
      const auto seed = static_cast<std::uint64_t>(batches_ * (steps_ + 1) + t);
      const std::vector<float> views = RandomViews(env_, lanes_, seed);
      std::memcpy(row.record, views.data(), views.size() * sizeof(float));
      for (int lane = 0; lane < lanes_; ++lane) Fill(row, t, lane);
      gate_.Commit(chunk);
    }
    return {gate_.OpenLease(1, steps_ + 1, 0), rows_};
  }

 private:
  static constexpr int kCapacity = 64;  // rows

  void Fill(RowView& row, int t, int lane) const {
    const bool last = (t + lane) % 6 == 5;
    const int actions = env_.action.count;
    if (env_.action.has_mask) row.mask[lane] = (std::uint64_t{1} << actions) - 1;
    row.action[lane] = last ? 0 : (t + 3 * lane + batches_) % actions;
    row.log_prob[lane] = last ? 0.0F : -std::log(static_cast<float>(actions));
    row.flags[lane] = last ? kIsLast | kTerminated : 0;
    row.cont[lane] = last ? 0.0F : 1.0F;
    row.reward[lane] = static_cast<float>((lane + batches_) % 3);
  }

  const EnvSpec env_;
  const int steps_, lanes_;
  int batches_ = 0;
  ReplayGate gate_{{.capacity_rows = kCapacity, .commit_stride = 1},
                   std::make_unique<FifoSelector>(1, steps_),
                   FifoLimiter(/*batch_windows=*/1)};
  HostRows rows_;
};

}  // namespace tetrion::testing
