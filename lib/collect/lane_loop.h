#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/collect/sink.h"
#include "lib/collect/token_source.h"
#include "lib/collect/weights_source.h"
#include "lib/core/clock.h"
#include "lib/envs/vec_env.h"
#include "lib/policy/policy.h"

namespace tetrion {

// Steps M environment lanes with one policy and writes one row per logical time into a sink.
//
// Thread role: one worker thread calls everything but `counters()`.
//
// For row t: lanes whose episode ended take a token (waiting here stalls the worker: it publishes
// first), the sink gives the row's memory, the environment writes what the actions of row t-1 led
// to, the policy writes action and log-probability, the row is complete. An episode is announced to
// the listener only after its last row is published: "reported" means "in the ring".
//
// Nothing is allocated after construction while rows flow.

// Told of what happened to tokens. Called on the worker's thread; must not block.
class LaneListener {
 public:
  virtual ~LaneListener() = default;
  // Episodes whose last row the other side can see.
  virtual void OnEpisodes(std::span<const EpisodeResult> episodes) = 0;
  // Tokens given back unfinished: "drain" or "not_finite".
  virtual void OnAbandoned(std::span<const Token> tokens, const char* reason) = 0;
  // One row was made; nanoseconds spent in environment and policy, versions the policy was behind.
  virtual void OnRow(std::int64_t env_ns, std::int64_t inference_ns,
                     std::uint32_t lag_versions) = 0;
};

enum class WaitReason { kToken = 0, kRing = 1, kWeights = 2 };
inline constexpr int kWaitReasons = 3;

// Written by the worker, read by anyone; relaxed, since no figure orders another.
struct alignas(128) LaneCounters {
  std::atomic<std::uint64_t> env_steps{0};   // actions executed
  std::atomic<std::uint64_t> rows{0};        // rows completed
  std::atomic<std::uint64_t> episodes{0};    // episodes announced
  std::atomic<std::uint64_t> not_finite{0};  // rows on which the policy failed
  std::atomic<std::int64_t> wait_ns[kWaitReasons]{};
  std::atomic<std::uint32_t> policy_version{0};
};

enum class [[nodiscard]] RunResult{
    kRow,      // one row was made
    kWaiting,  // a wait timed out; call again
    kDrained,  // lanes are cut and everything is published; call no more
};

struct LaneLoopConfig {
  std::int64_t wait_timeout_ns =
      50 * kNanosPerMilli;  // longest single wait, so that a stop is seen
  int max_not_finite = 5;   // consecutive failing rows after which the policy counts as broken
};

class LaneLoop {
 public:
  // All references must outlive the loop. `weights` may be null for policies without weights.
  LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
           std::unique_ptr<Policy> policy, TokenSource& tokens, RowSink& sink,
           WeightsSource* weights, LaneListener& listener);

  // Makes one row or waits once. Throws Error(kTryAgain) when the policy failed max_not_finite
  // times in a row.
  RunResult RunOnce();

  // Copied from afar; see LaneCounters.
  const LaneCounters& counters() const { return counters_; }

 private:
  // What a lane needs before the next row.
  enum class LaneState : std::uint8_t { kNeedsToken, kPlaying };

  bool RefreshWeights();
  RunResult TakeTokens();
  RunResult CutLanes(TakeResult why);
  bool ClaimRow(RowView& row);
  void MakeRow(const RowView& row);
  void AbandonLive(const RowView& row);
  void AbandonWithoutRow();
  void FinishRow(const RowView& row);
  void CountNotFinite();
  void EndEpisodes(const RowView& row);
  void Announce();
  ActResult ActOn(const RowView& row);
  void WriteIdleLane(const RowView& row, int lane);
  void AddWait(WaitReason reason, std::int64_t start_ns);

  const LaneLoopConfig config_;
  const std::unique_ptr<VecEnv> env_;
  const std::unique_ptr<Policy> policy_;
  TokenSource& tokens_;
  RowSink& sink_;
  WeightsSource* const weights_;
  LaneListener& listener_;
  const Clock& clock_ = MonotonicClock::Get();
  const int lanes_;

  std::uint64_t row_ = 0;   // number of the next row
  int need_token_ = 0;      // lanes in kNeedsToken
  int not_finite_run_ = 0;  // consecutive failing rows
  bool claimed_ = false;    // claimed_row_ is ours but not complete
  RowView claimed_row_;
  std::vector<LaneState> state_;           // [M]
  std::vector<int> all_lanes_;             // [M] 0..M-1
  std::vector<int> playing_;               // [<= M] scratch of CutLanes
  std::vector<std::int32_t> actions_;      // [M] of the row before
  std::vector<std::int32_t> episode_ids_;  // [M] of the row before
  std::vector<std::uint64_t> masks_;       // [M] scratch: masks with no legal action widened
  std::vector<std::uint64_t> token_ids_;   // [M]
  std::vector<std::uint32_t> steps_;       // [M]
  // Episodes that ended, in row order; announced once their last row is published.
  struct Ended {
    std::uint64_t last_row;
    EpisodeResult result;
  };
  std::vector<Ended> ended_;
  std::vector<EpisodeResult> announced_;  // scratch of Announce
  std::vector<Token> abandoned_;          // scratch
  LaneCounters counters_;
};

}  // namespace tetrion
