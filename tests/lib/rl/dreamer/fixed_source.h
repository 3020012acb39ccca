#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lib/frame/row_layout.h"
#include "lib/frame/specs.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "lib/rl/trainer.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/replay/scripted_selector.h"

namespace tetrion::testing {

// Behind rows of all lanes, as the replay has them.
struct Latents {
  std::vector<std::uint16_t> deter;
  std::vector<std::uint8_t> stoch, valid;
};

// What a FixedSource holds.
struct FixedRows {
  EnvSpec env = VectorEnv();
  DreamerSettings settings = {};
  int steps = 8, lanes = 4;
  float poison = 0;  // added to the rewards
  int later = 0;     // rows by which the lanes' episodes end later
  // So many of the last lanes idle behind their end; what their rows hold then is changed by
  // `idle_noise`.
  int idle_lanes = 0;
  float idle_noise = 0;
};

// Rows of which none is an episode's.
inline FixedRows AllIdle(FixedRows rows = {}) {
  rows.later = -(rows.steps + rows.lanes);  // behind an end before the first row
  rows.idle_lanes = rows.lanes;
  return rows;
}

// The same rows again and again: noise to look at, one reward in three rows, and an episode that
// ends and begins in the middle of each lane but the first.
class FixedSource final : public BatchSource {
 public:
  explicit FixedSource(FixedRows fixed = {}) : fixed_(std::move(fixed)) {
    auto selector = std::make_unique<ScriptedSelector>();
    for (int lane = 0; lane < fixed_.lanes; ++lane) {
      selector->windows.push_back({.shard = 0, .start = 0, .lane = lane});
    }
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 1, .capacity_rows = kCapacity, .commit_stride = 1},
        std::move(selector), Limiter::Unlimited());
    for (int t = 0; t < rows(); ++t) {
      std::vector<std::byte> bytes(rows_.layout().row_bytes);
      const RowView row(rows_.layout(), bytes.data());
      for (int lane = 0; lane < fixed_.lanes; ++lane) Fill(row, t, lane);
      int pushed = 0;
      (void)PushRows(*gate_, rows_, 0, bytes.data(), 1, 0, pushed);
    }
  }

  int rows() const { return fixed_.steps + 1; }
  TrainBatch Next() override { return {gate_->OpenLease(fixed_.lanes, rows(), 0), rows_}; }
  // What is known behind each row.
  Latents Known() {
    const TrainBatch batch = Next();
    const LatentSpec spec = DreamerLatents(fixed_.settings);
    const auto cells = static_cast<std::size_t>(rows() * fixed_.lanes);
    Latents known = {.deter = std::vector<std::uint16_t>(cells * spec.deter),
                     .stoch = std::vector<std::uint8_t>(cells * spec.stoch),
                     .valid = std::vector<std::uint8_t>(cells)};
    batch.GatherLatents({.first_lane = 0, .lanes = fixed_.lanes, .first_row = 0, .rows = rows()},
                        {known.deter.data(), known.stoch.data(), known.valid.data()});
    return known;
  }
  std::vector<std::uint8_t> Valid() { return Known().valid; }

  // Of planes bits, of pictures four grey values.
  std::vector<float> ViewOf(int t, int lane) const {
    std::vector<float> view = Noise(static_cast<std::size_t>(fixed_.env.obs.view_floats),
                                    static_cast<std::uint64_t>(t * fixed_.lanes + lane));
    const float most = fixed_.env.obs.view == "planes" ? 1.0F : 3.0F;
    if (fixed_.env.obs.view == "vector") return view;
    for (float& x : view) x = std::round((x + 1) / 2 * most) / most;
    return view;
  }
  int EndOf(int lane) const { return lane == 0 ? -2 : lane + 2 + fixed_.later; }
  int ActionOf(int t, int lane) const { return t == EndOf(lane) ? 0 : (t + lane) % 2; }

 private:
  static constexpr int kCapacity = 64;  // rows

  bool Idles(int t, int lane) const {
    return lane >= fixed_.lanes - fixed_.idle_lanes && t > EndOf(lane);
  }
  void Fill(const RowView& row, int t, int lane) const {
    const int end = EndOf(lane);
    std::vector<float> view = ViewOf(t, lane);
    if (Idles(t, lane)) {
      for (float& x : view) x += fixed_.idle_noise;
    }
    const std::size_t bytes = view.size() * sizeof(float);
    std::memcpy(row.record + static_cast<std::size_t>(lane) * bytes, view.data(), bytes);
    row.action[lane] = ActionOf(t, lane);
    row.reward[lane] = ((t * fixed_.lanes + lane) % 3 == 0 ? 1.0F : 0.0F) + fixed_.poison;
    row.flags[lane] = t == end ? kIsLast | kTerminated : t == end + 1 ? kIsFirst : 0;
    row.cont[lane] = t == end ? 0.0F : 1.0F;
    if (!Idles(t, lane)) return;
    row.reward[lane] += fixed_.idle_noise;
    row.flags[lane] = kIsLast | kTruncated;
  }

  const FixedRows fixed_;
  std::unique_ptr<ReplayGate> gate_;
  HostRows rows_{{.record_bytes = fixed_.env.obs.record_bytes,
                  .lanes = static_cast<std::uint32_t>(fixed_.lanes),
                  .has_mask = false},
                 1,
                 kCapacity,
                 DreamerLatents(fixed_.settings)};
};

}  // namespace tetrion::testing
