#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/collect/lane_listener.h"
#include "lib/collect/sink.h"
#include "lib/collect/token_source.h"
#include "lib/core/clock.h"
#include "lib/envs/vec_env.h"
#include "lib/policy/inference_client.h"
#include "lib/policy/policy.h"
#include "lib/weights/weights_source.h"

namespace tetrion {

// Steps M environment lanes and writes one row per logical time into a sink.
//
// Thread role: one worker thread calls everything but `counters()`.
//
// For row t: lanes whose episode ended take a token (waiting here stalls the worker: it publishes
// first), the sink gives the row's memory, the environment writes what the actions of row t-1 led
// to, the row is decided. With a policy of its own the loop writes action and log-probability and
// completes the row; with an InferenceClient it publishes the row at once and takes the answer when
// it is asked for the next one. An episode is announced to the listener only after its last row is
// published: "reported" means "in the ring". A lane for which there is no token may stay idle
// (TakeResult::kIdle): its column then holds an empty record with is_last.
//
// Nothing is allocated after construction while rows flow.

enum class [[nodiscard]] RunResult {
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
  // Rows are decided by `answers`.
  LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env, InferenceClient& answers,
           TokenSource& tokens, RowSink& sink, LaneListener& listener);

  // Makes one row or waits once. Throws Error(kTryAgain) when the policy failed max_not_finite
  // times in a row or an answer was impossible.
  RunResult RunOnce() { return RunOnce(config_.wait_timeout_ns); }
  // The same with another bound of a single wait; 0 only looks.
  RunResult RunOnce(std::int64_t wait_timeout_ns);

  // Copied from afar; see LaneCounters.
  const LaneCounters& counters() const { return counters_; }

 private:
  // What a lane needs before the next row.
  enum class LaneState : std::uint8_t { kNeedsToken, kPlaying };

  LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
           std::unique_ptr<Policy> policy, InferenceClient* answers, TokenSource& tokens,
           RowSink& sink, WeightsSource* weights, LaneListener& listener);

  // What the next row needs (lane_loop.cc).
  RunResult TakeAnswer();
  bool CanDecide();
  RunResult TakeTokens();
  void Begin(int lane, const Token& token);
  bool ClaimRow(RowView& row);
  // The row (lane_loop.cc).
  void MakeRow(const RowView& row);
  void StepPlaying(const RowView& row);
  void Decide(const RowView& row);
  ActResult ActOn(const RowView& row);
  void WriteIdleLane(const RowView& row, int lane);
  void FinishRow(const RowView& row);
  void Publish(const RowView& row);
  void Complete(const RowView& row, std::uint32_t version);
  // How episodes end (lane_ends.cc).
  RunResult CutLanes(TakeResult why);
  void CutLive(const RowView& row);
  void DropLive();
  void AbandonWithoutRow(const char* reason);
  void CountNotFinite();
  void EndEpisodes(const RowView& row, std::uint32_t version);
  void Announce();
  void AddWait(WaitReason reason, std::int64_t start_ns);

  const LaneLoopConfig config_;
  const std::unique_ptr<VecEnv> env_;
  const std::unique_ptr<Policy> policy_;  // null with answers_
  InferenceClient* const answers_;
  TokenSource& tokens_;
  RowSink& sink_;
  WeightsSource* const weights_;
  LaneListener& listener_;
  const Clock& clock_ = MonotonicClock::Get();
  const int lanes_;

  std::int64_t wait_timeout_ns_ = 0;  // of the present call
  std::uint64_t row_ = 0;             // number of the next row
  int need_token_ = 0;      // lanes in kNeedsToken; those left when a row is made are idle
  int not_finite_run_ = 0;  // consecutive failing rows
  bool asked_ = false;      // row_ - 1 is published and awaits its answer
  std::int64_t asked_ns_ = 0;
  std::int64_t asked_env_ns_ = 0;
  std::uint32_t answer_version_ = 0;  // of the last answer
  bool claimed_ = false;              // claimed_row_ is ours but not complete
  RowView claimed_row_;
  std::vector<LaneState> state_;           // [M]
  std::vector<int> all_lanes_;             // [M] 0..M-1
  std::vector<int> playing_;               // [<= M] scratch: lanes in kPlaying
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
