#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/replay/gate.h"
#include "lib/replay/selectors/online.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "tests/lib/nn/test_envs.h"
#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/host_memory.h"

// DreamerV3's trainer on the host, with its rows there and on a device.
namespace tetrion {
namespace {

constexpr int kSteps = 4, kLanes = 2, kWindows = 3, kShards = 2, kCapacity = 16, kStride = 4;
constexpr std::size_t kViewFloats = 4;

// Windows drawn from two shards whose rows go on and on; an episode has seven.
template <class Memory>
class PlayedRows final : public BatchSource {
 public:
  PlayedRows()
      : gate_({.shards = kShards, .capacity_rows = kCapacity, .commit_stride = kStride},
              std::make_unique<OnlineSelector>(OnlineSelector::Config{
                  .uniform = {.shards = kShards, .window_rows = kSteps + 1, .lanes = kLanes},
                  .share = 0.5}),
              Limiter::Unlimited()) {}

  void Play(int rows) {
    const RowLayout& layout = memory_.rows().layout();
    for (const int end = played_ + rows; played_ < end; ++played_) {
      for (int shard = 0; shard < kShards; ++shard) {
        std::vector<std::byte> bytes(layout.row_bytes);
        const RowView row(layout, bytes.data());
        for (int lane = 0; lane < kLanes; ++lane) Fill(row, played_, shard, lane);
        int pushed = 0;
        EXPECT_EQ(PushRows(gate_, memory_.rows(), shard, bytes.data(), 1, 0, pushed),
                  AcquireResult::kAcquired);
      }
    }
  }
  TrainBatch Next() override {
    return {gate_.OpenLease(kWindows, kSteps + 1, kNanosPerSecond), memory_.rows()};
  }

 private:
  static void Fill(const RowView& row, int t, int shard, int lane) {
    constexpr int kEpisode = 7;
    const int at = (t + shard + lane) % kEpisode;
    const std::vector<float> view = testing::Noise(
        kViewFloats, static_cast<std::uint64_t>((t * kShards + shard) * kLanes + lane));
    std::memcpy(row.record + static_cast<std::size_t>(lane) * kViewFloats * sizeof(float),
                view.data(), kViewFloats * sizeof(float));
    row.action[lane] = at == kEpisode - 1 ? 0 : t % 2;
    row.reward[lane] = static_cast<float>(at % 3);
    row.flags[lane] = at == 0 ? kIsFirst : at == kEpisode - 1 ? kIsLast | kTerminated : 0;
    row.cont[lane] = at == kEpisode - 1 ? 0.0F : 1.0F;
  }

  Memory memory_{
      {.record_bytes = testing::VectorEnv().obs.record_bytes, .lanes = kLanes, .has_mask = false},
      kShards,
      kCapacity,
      DreamerLatents({})};
  ReplayGate gate_;
  int played_ = 0;
};

struct Learnt {
  std::vector<std::vector<float>> tensors;
  std::vector<UpdateStats> updates;
};

// Updates between which the rows go on, over three laps of the ring: latents are written back, read
// as context and overwritten.
template <class Memory>
Learnt Learn() {
  constexpr int kUpdates = 16, kRowsBetween = 2;
  PlayedRows<Memory> rows;
  const std::unique_ptr<Trainer> trainer =
      MakeDreamerTrainer({.settings = {.horizon = 2, .learning_rate = 1e-3, .warmup_updates = 2},
                          .window = kSteps,
                          .batch_lanes = kWindows},
                         testing::VectorEnv());
  Learnt learnt;
  rows.Play(kCapacity);
  for (int i = 0; i < kUpdates; ++i) {
    learnt.updates.push_back(trainer->Step(rows, 0));
    rows.Play(kRowsBetween);
  }
  for (TrainerState::Tensor& tensor : trainer->Save().tensors) {
    learnt.tensors.push_back(std::move(tensor.data));
  }
  return learnt;
}

TEST(DreamerDeviceTest, RowsOnADeviceTrainTheModelThatRowsOnTheHostTrainBitByBit) {
  using testing::DeviceMemory;
  if (const char* why = DeviceMemory::Missing()) GTEST_SKIP() << why;
  const Learnt host = Learn<testing::HostMemory>(), device = Learn<DeviceMemory>();
  ASSERT_EQ(host.updates.size(), device.updates.size());
  for (std::size_t i = 0; i < host.updates.size(); ++i) {
    EXPECT_EQ(host.updates[i].updates, 1) << host.updates[i].problem;
    EXPECT_EQ(host.updates[i].figures, device.updates[i].figures) << "update " << i;
  }
  EXPECT_EQ(host.tensors, device.tensors);
}

}  // namespace
}  // namespace tetrion
