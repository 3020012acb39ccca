#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "lib/collect/lane_loop.h"
#include "lib/core/philox.h"
#include "lib/cuda/launch.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/frame/row_layout.h"
#include "lib/frame/row_slots.h"
#include "tests/support/fake_lanes.h"

// Device lanes and the lane loop of the CPU, with one policy: a pure function of token and step.

namespace tetrion::testing {

// Mostly legal. Column 4 unturned is legal for every piece.
TETRION_HOST_DEVICE inline std::int32_t ChosenAction(std::uint64_t seed, std::uint64_t token_id,
                                                     std::uint32_t step, std::uint32_t count,
                                                     std::uint64_t mask) {
  const PhiloxBlock draw = PhiloxDraw(seed, token_id, step, PhiloxPurpose::kActions);
  const std::uint32_t action = BoundedDraw(draw.word[0], count);
  const bool keeps = (mask >> action & 1) != 0 || draw.word[1] % 16 == 0;
  return static_cast<std::int32_t>(keeps ? action : 16);
}

inline constexpr float kTestLogProb = -0.75F;
// Of the row: the test's policy learns every third row.
TETRION_HOST_DEVICE inline std::uint32_t VersionOfRow(std::uint64_t row) {
  return static_cast<std::uint32_t>(row / 3);
}

// The device's policy, a thread a lane. Static: two sources of one program have it.
static __global__ void ActOnRow(RowSlots slots, const std::uint64_t* row,
                                const std::uint64_t* token_ids, const std::uint32_t* steps,
                                std::uint64_t seed, std::uint32_t count) {
  const unsigned lane = blockIdx.x * blockDim.x + threadIdx.x;
  if (lane >= slots.lanes) return;
  const RowView view = slots.At(*row);
  const bool is_last = (view.flags[lane] & kIsLast) != 0;
  const std::uint64_t mask = view.mask == nullptr ? ~std::uint64_t{0} : view.mask[lane];
  view.action[lane] = is_last ? 0 : ChosenAction(seed, token_ids[lane], steps[lane], count, mask);
  view.log_prob[lane] = is_last ? 0.0F : kTestLogProb;
  if (lane == 0) view.header->policy_version = VersionOfRow(*row);
}

// The CPU's.
class ChosenActions final : public Policy {
 public:
  ChosenActions(std::uint64_t seed, const ActionSpec& action) : seed_(seed), action_(action) {}
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override {
    for (int i = 0; i < in.n; ++i) {
      const bool is_last = (in.flags[i] & kIsLast) != 0;
      const std::uint64_t mask = in.masks == nullptr ? ~std::uint64_t{0} : in.masks[i];
      out.action[i] = is_last ? 0
                              : ChosenAction(seed_, in.token_ids[i], in.steps[i],
                                             static_cast<std::uint32_t>(action_.count), mask);
      out.log_prob[i] = is_last ? 0.0F : kTestLogProb;
    }
    return ActResult::kOk;
  }
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t) override {
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return 0; }

 private:
  const std::uint64_t seed_;
  const ActionSpec action_;
};

// Rows of one shard in a device's memory.
class DeviceSlots {
 public:
  DeviceSlots(const cuda::Device& device, const RowSpec& spec, std::uint64_t capacity_rows) {
    slots.capacity_rows = capacity_rows;
    slots.lanes = spec.lanes;
    slots.record_bytes = spec.record_bytes;
    ForColumns(slots, spec.has_mask, [&](auto*& column, std::size_t bytes) {
      buffers_.emplace_back(device, bytes, "a test's rows");
      column = buffers_.back().template data<std::remove_reference_t<decltype(*column)>>();
    });
  }

  // A copy on the host, which the next one replaces. Waits for the stream.
  RowSlots Download(cuda::Stream& stream) {
    copies_.resize(buffers_.size());
    RowSlots host = slots;
    std::size_t at = 0;
    ForColumns(host, slots.mask != nullptr, [&](auto*& column, std::size_t bytes) {
      std::vector<std::byte>& copy = copies_[at++];
      copy.resize(bytes);
      CopyToHost(copy.data(), column, bytes, cuda::CopyPurpose::kSetUp, stream);
      column = reinterpret_cast<std::remove_reference_t<decltype(column)>>(copy.data());
    });
    stream.Synchronize();
    return host;
  }

  RowSlots slots;

 private:
  template <typename Fn>
  static void ForColumns(RowSlots& of, bool has_mask, const Fn& fn) {
    const std::size_t rows = of.capacity_rows, cells = rows * of.lanes;
    fn(of.header, rows * sizeof(RowHeader));
    fn(of.record, cells * of.record_bytes);
    fn(of.action, cells * sizeof(*of.action));
    fn(of.log_prob, cells * sizeof(*of.log_prob));
    if (has_mask) fn(of.mask, cells * sizeof(*of.mask));
    fn(of.reward, cells * sizeof(*of.reward));
    fn(of.flags, cells * sizeof(*of.flags));
    fn(of.cont, cells * sizeof(*of.cont));
    fn(of.episode_id, cells * sizeof(*of.episode_id));
  }

  std::vector<cuda::DeviceBuffer> buffers_;
  std::vector<std::vector<std::byte>> copies_;
};

// Device lanes, their rows and the test's policy.
struct DeviceSide {
  DeviceSide(const cuda::Device& device, const DeviceLanesConfig& config,
             std::uint64_t capacity_rows)
      : stream(device, "lanes"),
        lanes(device, config),
        rows(device, lanes.row_spec(), capacity_rows),
        seed(config.env.seed) {}

  void Row() {
    lanes.StepRow(rows.slots, stream);
    Launch(stream, ActOnRow, (rows.slots.lanes + 63) / 64, 64, 0, rows.slots, lanes.row(),
           lanes.token_ids(), lanes.steps(), seed,
           static_cast<std::uint32_t>(lanes.spec().action.count));
    lanes.Advance(stream);
  }
  // What ended since the last call.
  DeviceDrain Drain() {
    DeviceDrain drain;
    lanes.EnqueueDrain(stream);
    stream.Synchronize();
    EXPECT_TRUE(lanes.TakeDrained(drain));
    return drain;
  }

  cuda::Stream stream;
  DeviceLanes lanes;
  DeviceSlots rows;
  const std::uint64_t seed;
};

// The lane loop with the same tokens and policy.
struct CpuSide {
  explicit CpuSide(const EnvConfig& config, std::uint64_t stride = 1)
      : spec(MakeEnvSpec(config)),
        sink({.record_bytes = spec.obs.record_bytes,
              .lanes = static_cast<std::uint32_t>(config.lanes),
              .has_mask = spec.action.has_mask},
             stride),
        loop({.wait_timeout_ns = 1}, MakeVecEnv(config),
             std::make_unique<LocalDecider>(
                 std::make_unique<ChosenActions>(config.seed, spec.action), nullptr, config.lanes),
             tokens, sink, recorder) {
    tokens.when_empty = TakeResult::kIdle;
  }
  void Row() { ASSERT_EQ(loop.RunOnce(), RunResult::kRow); }

  const EnvSpec spec;
  ListTokens tokens;
  VectorSink sink;
  Recorder recorder;
  LaneLoop loop;
};

// All columns but the header's version, which the CPU's policy has no rows for.
inline ::testing::AssertionResult SameRow(const RowView& device, const RowView& cpu,
                                          const RowSpec& spec) {
  const auto differ = [&](const auto* one, const auto* other, std::size_t count) {
    return std::memcmp(one, other, count * sizeof(*one)) != 0;
  };
  const std::size_t lanes = spec.lanes;
  const char* column = device.header->row != cpu.header->row                          ? "row"
                       : device.header->reserved != 0                                 ? "reserved"
                       : differ(device.flags, cpu.flags, lanes)                       ? "flags"
                       : differ(device.episode_id, cpu.episode_id, lanes)             ? "episode_id"
                       : differ(device.action, cpu.action, lanes)                     ? "action"
                       : differ(device.record, cpu.record, lanes * spec.record_bytes) ? "record"
                       : spec.has_mask && differ(device.mask, cpu.mask, lanes)        ? "mask"
                       : differ(device.reward, cpu.reward, lanes)                     ? "reward"
                       : differ(device.cont, cpu.cont, lanes)                         ? "cont"
                       : differ(device.log_prob, cpu.log_prob, lanes)                 ? "log_prob"
                                                                                      : nullptr;
  if (column == nullptr) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "column " << column << " of row " << cpu.header->row;
}

}  // namespace tetrion::testing
