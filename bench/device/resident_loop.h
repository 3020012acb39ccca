#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
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
// Between two drains of resident lanes: the host is at most twice as far ahead of the device.
inline constexpr int kChunksADrain = 4;
// Tokens of a lane that are waiting, played or not drained: more than the episodes, of eight steps
// or more, that end in 2 * kChunksADrain chunks.
inline constexpr int kTokensALane = 16;

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
  int drained_a_lane = 1;         // at least the mean count of episodes that end between two drains
};

// Lanes that play in the replay's memory; tokens go on without end. One thread.
class ResidentLoop {
 public:
  ResidentLoop(const cuda::Device& device, const ResidentConfig& config)
      : max_steps_(config.max_steps),
        lanes_(device, {.env = {.name = config.env, .lanes = config.lanes, .seed = 7},
                        .record = config.record,
                        .token_capacity = static_cast<std::uint32_t>(kTokensALane * config.lanes),
                        .episode_capacity = static_cast<std::uint32_t>(kTokensALane * config.lanes),
                        .drain_episodes =
                            static_cast<std::uint32_t>(config.drained_a_lane * config.lanes)}),
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
    Give(static_cast<std::size_t>(kTokensALane * config.lanes));
  }

  DeviceReplay& replay() { return replay_; }

  // Enqueues kChunkRows rows, one graph. After every kChunksADrain of them waits for the drain that
  // so many before have enqueued, gives tokens for what had ended, and enqueues the next.
  void Chunk() {
    const tetrion::Chunk chunk = replay_.gate.Acquire(0, kChunkRows, kNanosPerSecond);
    TETRION_CHECK(chunk && chunk.rows == kChunkRows, "nothing holds the writer back");
    if (!graph_) Record();
    replay_.writer.Launch(*graph_);
    replay_.gate.Commit(chunk, replay_.rows.Written());
    if (++chunks_ % kChunksADrain != 0) return;
    if (draining_) static_cast<void>(Refill());
    lanes_.EnqueueDrain(replay_.writer);
    draining_ = true;
  }

  // Waits for all chunks. Steps that lanes have played since the last call, or the start; a row of
  // a lane without an episode is none. Ends the program when more than a quarter of the rows are
  // such rows or the first of an episode: tokens were short, and the device had less to do.
  double TakeSteps() {
    replay_.Synchronize();
    if (draining_) static_cast<void>(Refill());
    lanes_.EnqueueDrain(replay_.writer);
    const DeviceDrain now = Refill();
    const auto steps = static_cast<double>(now.env_steps - std::exchange(steps_, now.env_steps));
    const auto rows = static_cast<double>(now.rows - std::exchange(rows_, now.rows));
    TETRION_CHECK(4 * steps >= 3 * rows * lanes_.row_spec().lanes, "lanes have episodes to play");
    return steps;
  }

 private:
  // Waits for the drain, and gives a token for each episode in it.
  DeviceDrain Refill() {
    DeviceDrain drain;
    const Deadline deadline = Deadline::AfterMs(10'000);
    while (!lanes_.TakeDrained(drain)) {
      TETRION_CHECK(!deadline.Passed(), "the device goes on");
      std::this_thread::yield();
    }
    draining_ = false;
    Give(drain.episodes.size());
    return drain;
  }
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
  int chunks_ = 0;
  std::uint64_t next_token_ = 0, steps_ = 0, rows_ = 0;
};

}  // namespace tetrion::bench
