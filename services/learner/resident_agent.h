#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/cuda/device.h"
#include "lib/envs/cuda/device_lanes.h"
#include "lib/policy/cuda/device_policy.h"
#include "lib/replay/device_rows.h"
#include "lib/replay/gate.h"
#include "lib/weights/weights_source.h"
#include "services/common/outbox.h"
#include "services/learner/drain_pace.h"

namespace tetrion::learner {

// Written by the resident thread, read by anyone; relaxed.
struct ResidentCounters {
  std::atomic<std::uint64_t> rows{0};        // rows enqueued and committed, of all lanes
  std::atomic<std::uint64_t> env_steps{0};   // actions taken, as of the last drain
  std::atomic<std::uint64_t> episodes{0};    // episodes ended, as of the last drain
  std::atomic<std::uint64_t> not_finite{0};  // rows on which the policy failed
  std::atomic<std::int64_t> wait_token_ns{0}, wait_weights_ns{0};
  std::atomic<std::int64_t> wait_replay_ns{0};  // for the trainer: limiter and leases
};

// Plays lanes that live in device memory beside the replay: the environment writes each row into
// its slot, the policy decides it there, and a chunk is committed with an event behind that work.
// No row passes through the host; tokens go down and ended episodes come up, a few bytes each.
//
//   CreditQueues ──▶ DeviceLanes ──rows──▶ DeviceRows ──▶ trainer
//   Outbox ◀─drains─────┘   ▲ DevicePolicy ◀── WeightsSource ◀── trainer
//
// An episode is reported once a copy that was enqueued behind the commit of its last row has
// arrived: "reported" means "in the replay", as with rings. The N lanes are `groups` of M, each a
// worker of the account: lane l is lane l mod M of worker l / M.
//
// Thread role: DoWork on the resident thread, the only writer of the gate.
class ResidentAgent final : public Agent {
 public:
  struct Config {
    int group_lanes = 1;                            // M, the run's lanes of a worker
    int commit_stride = 8;                          // rows of a chunk
    std::int64_t wait_ns = 20 * kNanosPerMilli;     // longest single wait
    std::int64_t drain_every_ns = kNanosPerSecond;  // longest time between fetches of what ended
    int max_not_finite = 5;  // chunks in a row after which the policy counts as broken
  };
  struct Parts {
    std::unique_ptr<DeviceLanes> lanes;  // their row 0 is the replay's
    std::unique_ptr<DevicePolicy> policy;
    std::unique_ptr<WeightsSource> weights;
  };
  // References outlive the agent. `rows` has one shard, whose lanes are those of the parts;
  // `stream` is what `rows` are written on. `credits`: one a group.
  ResidentAgent(const Config& config, Parts parts, ReplayGate& gate, DeviceRows& rows,
                cuda::Stream& stream, std::deque<CreditQueue>& credits, Outbox& outbox,
                const Clock& clock = MonotonicClock::Get());
  ~ResidentAgent() override;

  std::string name() const override { return "resident"; }
  int DoWork() override;

  // --- any thread ---
  const ResidentCounters& counters() const { return counters_; }
  // Every lane has ended after its credits were drained, and the outbox has what there was to tell.
  bool Drained() const { return drained_.load(std::memory_order_acquire); }

 private:
  class Weights;  // the policy as a user of weights

  TakeResult State() const;
  bool FencesAgree() const;
  bool HasWeights();
  void TakeTokens();
  bool WaitForTokens();
  Chunk AcquireRows(int most);
  void Play(const Chunk& chunk);
  void EnqueueDrain();
  void TakeDrained();
  int CutLanes(TakeResult why);
  void TakeLastDrain();
  void LookAtPolicy();

  const Config config_;
  const Parts parts_;
  ReplayGate& gate_;
  DeviceRows& rows_;
  cuda::Stream& stream_;
  std::deque<CreditQueue>& credits_;
  Outbox& outbox_;
  const Clock& clock_;
  const std::unique_ptr<Weights> weights_user_;
  std::size_t next_group_ = 0;  // whose credits are taken next
  std::uint64_t in_play_ = 0;   // tokens on the device, less the episodes known to have ended
  std::optional<cuda::Graph> full_chunk_;  // commit_stride rows
  DrainPace pace_;
  bool drain_enqueued_ = false;
  std::uint64_t ended_left_ = 0;  // episodes that the last drain had no room for
  int not_finite_run_ = 0;        // consecutive chunks on which the policy failed
  std::vector<Token> tokens_;     // scratch: taken, not on the device yet
  std::vector<std::vector<EpisodeResult>> by_group_;  // scratch of TakeDrained
  ResidentCounters counters_;
  std::atomic<bool> drained_{false};
};

}  // namespace tetrion::learner
