#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "bench/envs/windows.h"
#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/philox.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/uniform.h"
#include "lib/rl/dreamer/dreamer_trainer.h"

namespace tetrion::bench {

inline constexpr int kViewFloats = 4;
inline constexpr int kEpisodeRows = 50;  // about what CartPole's episodes have while it learns

// What is measured: B windows of T rows.
struct DreamerCase {
  const char* size;
  int lanes, window;
};
inline EnvSpec Env() {
  EnvSpec env;
  env.name = "bench";
  env.obs = {.record = "floats",
             .record_bytes = kViewFloats * sizeof(float),
             .view = "vector",
             .view_floats = kViewFloats,
             .queue_size = 0,
             .expand = [](const std::byte* records, std::int64_t n, int, float* out) {
               std::memcpy(out, records, static_cast<std::size_t>(n) * kViewFloats * sizeof(float));
             }};
  env.action = {.count = 2, .has_mask = false};
  return env;
}

// A replay of noise, with an end of an episode now and then; uniform windows of one lane each.
class NoiseRows final : public BatchSource {
 public:
  NoiseRows(const DreamerCase& what, const LatentSpec& latents)
      : lanes_(what.lanes),
        window_rows_(what.window + 1),
        rows_({.record_bytes = Env().obs.record_bytes,
               .lanes = static_cast<std::uint32_t>(what.lanes),
               .has_mask = false},
              /*shards=*/1, 4 * window_rows_, latents) {
    gate_ = std::make_unique<ReplayGate>(
        GateConfig{.shards = 1, .capacity_rows = 4 * window_rows_, .commit_stride = 1},
        std::make_unique<UniformSelector>(UniformSelector::Config{
            .shards = 1, .window_rows = window_rows_, .lanes = lanes_, .seed = 1}),
        Limiter::Unlimited());
    std::vector<std::byte> bytes(rows_.layout().row_bytes);
    for (int t = 0; t < 4 * window_rows_; ++t) {
      const RowView row(rows_.layout(), bytes.data());
      for (int lane = 0; lane < lanes_; ++lane) Fill(row, t, lane);
      int pushed = 0;
      (void)PushRows(*gate_, rows_, 0, bytes.data(), 1, 0, pushed);
      TETRION_CHECK(pushed == 1, "the replay takes every row");
    }
  }
  TrainBatch Next() override { return {gate_->OpenLease(lanes_, window_rows_, 0), rows_}; }

 private:
  static void Fill(const RowView& row, int t, int lane) {
    const PhiloxBlock draw = PhiloxDraw(1, static_cast<std::uint64_t>(t),
                                        static_cast<std::uint32_t>(lane), PhiloxPurpose::kSampler);
    float view[kViewFloats];
    for (int i = 0; i < kViewFloats; ++i) {
      view[i] = static_cast<float>(UnitDraw(draw.word[i]) * 2 - 1);
    }
    std::memcpy(row.record + static_cast<std::size_t>(lane) * sizeof view, view, sizeof view);
    const int age = (t + 7 * lane) % kEpisodeRows;
    const bool ends = age == kEpisodeRows - 1;
    row.action[lane] = ends ? 0 : static_cast<std::int32_t>(draw.word[0] % 2);
    row.reward[lane] = 1.0F;
    row.flags[lane] = ends ? kIsLast | kTerminated : age == 0 ? kIsFirst : 0;
    row.cont[lane] = ends ? 0.0F : 1.0F;
  }

  const int lanes_, window_rows_;
  HostRows rows_;
  std::unique_ptr<ReplayGate> gate_;
};

// Milliseconds of an update, or their sums over several.
struct Cost {
  double wall = 0, cpu = 0, sample = 0, observe = 0, imagine = 0, losses = 0, backward = 0,
         optimise = 0;
};

// A trainer and its rows. Updates are computed at `place`, or without one on the CPU.
class Contestant {
 public:
  Contestant(const DreamerCase& what, int threads, std::unique_ptr<UpdatePlace> place = nullptr)
      : config_(ConfigOf(what, threads)) {
    rows_ = std::make_unique<NoiseRows>(what, DreamerLatents(config_.settings));
    trainer_ = MakeDreamerTrainer(config_, Env(), std::make_unique<OneLearner>(), std::move(place));
  }

  // One update, whose cost is added.
  void Update(Cost& cost) {
    constexpr double kMillis = 1e3;
    const std::int64_t start_ns = MonotonicClock::Get().NowNs();
    const std::clock_t start_cpu = std::clock();
    const UpdateStats stats = trainer_->Step(*rows_, 0);
    cost.cpu += kMillis * static_cast<double>(std::clock() - start_cpu) / CLOCKS_PER_SEC;
    cost.wall += static_cast<double>(MonotonicClock::Get().NowNs() - start_ns) / kNanosPerMilli;
    if (stats.updates != 1) {
      std::fprintf(stderr, "an update was not taken: %s\n", stats.problem.c_str());
      std::exit(1);
    }
    cost.sample += kMillis * stats.sample_s;
    cost.observe += kMillis * stats.observe_s;
    cost.imagine += kMillis * stats.imagine_s;
    cost.losses += kMillis * (stats.forward_s - stats.observe_s - stats.imagine_s);
    cost.backward += kMillis * stats.backward_s;
    cost.optimise += kMillis * stats.optimise_s;
  }

 private:
  static DreamerConfig ConfigOf(const DreamerCase& what, int threads) {
    DreamerConfig config;
    config.settings.size = what.size;
    config.window = what.window;
    config.batch_lanes = what.lanes;
    config.threads = threads;
    return config;
  }

  const DreamerConfig config_;
  std::unique_ptr<NoiseRows> rows_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace tetrion::bench
