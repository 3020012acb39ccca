#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/envs/cuda/device_views.h"
#include "lib/policy/cuda/device_policy.h"
#include "lib/replay/device_rows.h"
#include "lib/replay/selectors/uniform.h"

// What the benches of device code drive: a replay on a device with a reader, and resident lanes.
namespace tetrion::bench {

inline constexpr int kChunkRows = 8, kWindowRows = 17;

// The replay behind its gate, and a reader that gathers a window of all lanes.
struct DeviceReplay {
  DeviceReplay(const cuda::Device& device, const RowSpec& row, int capacity_rows)
      : writer(device, "writer"),
        reader(device, "reader"),
        gate({.shards = 1, .capacity_rows = capacity_rows, .commit_stride = kChunkRows},
             std::make_unique<UniformSelector>(
                 UniformSelector::Config{.shards = 1, .window_rows = kWindowRows}),
             Limiter::Unlimited()),
        rows(device, row, 1, capacity_rows, writer, reader),
        batch(device, std::size_t{kWindowRows} * row.lanes * row.record_bytes, "batch") {}

  void Read() {
    ReadLease lease = gate.OpenLease(1, kWindowRows, 0);
    if (!lease) return;
    rows.GatherOnDevice(lease, 0, rows.BatchLanes(lease), {.record = batch.data<std::byte>()});
    lease.CloseAfter(rows.LastRead());
  }
  void Synchronize() {
    writer.Synchronize();
    reader.Synchronize();
  }

  cuda::Stream writer, reader;
  ReplayGate gate;
  DeviceRows rows;
  cuda::DeviceBuffer batch;
};

struct ResidentConfig {
  std::string env = "tetris";
  std::string record;              // "": the environment's states
  std::string network = "random";  // "": actions are 0
  int lanes = 0, capacity_rows = 0;
  std::uint32_t max_steps = 500;  // of an episode
};

// Lanes that play in the replay's memory; tokens go on without end.
class ResidentLoop {
 public:
  ResidentLoop(const cuda::Device& device, const ResidentConfig& config)
      : max_steps_(config.max_steps),
        lanes_(device, {.env = {.name = config.env, .lanes = config.lanes, .seed = 7},
                        .record = config.record,
                        .token_capacity = static_cast<std::uint32_t>(2 * config.lanes),
                        .episode_capacity = static_cast<std::uint32_t>(4 * config.lanes),
                        .drain_episodes = static_cast<std::uint32_t>(config.lanes)}),
        policy_(config.network.empty()
                    ? nullptr
                    : MakeDevicePolicy(
                          device,
                          {.network = config.network,
                           .seed = 7,
                           .lanes = config.lanes,
                           .expand = config.network == "mlp" ? DeviceExpandOf(lanes_.spec().obs)
                                                             : nullptr},
                          lanes_.spec())),
        replay_(device, lanes_.row_spec(), config.capacity_rows) {
    const RowSlots slots = replay_.rows.Slots(0);
    cuda::SetBytes(slots.action, 0, sizeof(std::int32_t) * slots.lanes * slots.capacity_rows,
                   replay_.writer);  // without a policy they stay so
    Give(static_cast<std::size_t>(2 * config.lanes));
  }

  DeviceReplay& replay() { return replay_; }

  // Enqueues kChunkRows rows, one graph.
  void Chunk() {
    DeviceDrain drain;
    if (draining_ && lanes_.TakeDrained(drain)) {
      draining_ = false;
      Give(drain.episodes.size());
    }
    const tetrion::Chunk chunk = replay_.gate.Acquire(0, kChunkRows, kNanosPerSecond);
    TETRION_CHECK(chunk && chunk.rows == kChunkRows, "nothing holds the writer back");
    if (!graph_) Record();
    replay_.writer.Launch(*graph_);
    replay_.gate.Commit(chunk, replay_.rows.Written());
    if (!std::exchange(draining_, true)) lanes_.EnqueueDrain(replay_.writer);
  }

 private:
  void Give(std::size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) {
      token = {.id = next_token_++, .attempt = 1, .max_steps = max_steps_};
    }
    if (count > 0) static_cast<void>(lanes_.AddTokens(tokens, replay_.writer));
  }
  void Record() {
    const RowSlots slots = replay_.rows.Slots(0);
    cuda::Capture capture(replay_.writer);
    for (int row = 0; row < kChunkRows; ++row) {
      lanes_.StepRow(slots, replay_.writer);
      if (policy_) {
        policy_->Decide(slots, lanes_.row(), lanes_.token_ids(), lanes_.steps(), replay_.writer);
      }
      lanes_.Advance(replay_.writer);
    }
    graph_.emplace(capture.End());
  }

  const std::uint32_t max_steps_;
  DeviceLanes lanes_;
  const std::unique_ptr<DevicePolicy> policy_;
  DeviceReplay replay_;
  std::optional<cuda::Graph> graph_;
  bool draining_ = false;
  std::uint64_t next_token_ = 0;
};

}  // namespace tetrion::bench
