#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/collect/decider.h"
#include "lib/collect/lane_book.h"
#include "lib/collect/lane_ports.h"
#include "lib/core/clock.h"
#include "lib/envs/vec_env.h"

namespace tetrion {

// Steps M environment lanes and writes one row per logical time into a sink.
//
// Thread role: one worker thread calls everything but `counters()`.
//
// For row t: lanes whose episode ended take a token (waiting here stalls the worker: it publishes
// first), the sink gives the row's memory, the environment writes what the actions of row t-1 led
// to, the decider decides the row. A row decided at once gets action and log-probability and is
// complete; a row that is decided later is published at once, and its answer is taken when the loop
// is asked for the next one. An episode is announced to the listener only after its last row has
// arrived (RowSink::PublishedRows): "reported" means "in the ring", or acknowledged. A lane for
// which there is no token may stay idle (TakeResult::kIdle): its column then holds an empty record
// with is_last.
//
// Nothing is allocated after construction while rows flow and episodes are announced as LaneBook
// expects.

enum class [[nodiscard]] RunResult {
  kRow,      // one row was made
  kWaiting,  // a wait timed out; call again
  kDrained,  // lanes are cut, everything is published and announced; call no more
};

struct LaneLoopConfig {
  std::int64_t wait_timeout_ns =
      50 * kNanosPerMilli;  // longest single wait: a stop is seen by then
  int max_not_finite = 5;   // consecutive failing rows after which the policy counts as broken
};

class LaneLoop {
 public:
  // All references must outlive the loop.
  LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
           std::unique_ptr<Decider> decider, TokenSource& tokens, RowSink& sink,
           LaneListener& listener);

  // Makes one row or waits once. Throws Error(kTryAgain) when the policy failed max_not_finite
  // times in a row or an answer was impossible.
  RunResult RunOnce() { return RunOnce(config_.wait_timeout_ns); }
  // The same with another bound of a single wait; 0 only looks.
  RunResult RunOnce(std::int64_t wait_timeout_ns);

  // Safe to read from any thread; see LaneCounters.
  const LaneCounters& counters() const { return counters_; }

 private:
  // What the next row needs.
  RunResult TakeAnswer();
  bool CanDecide();
  RunResult TakeTokens();
  bool ClaimRow(RowView& row);
  // The row.
  void MakeRow(const RowView& row);
  void StepPlaying(const RowView& row);
  void WriteIdleLane(const RowView& row, int lane);
  void FinishRow(const RowView& row);
  void Publish(const RowView& row);
  void Complete(const RowView& row, std::uint32_t acted);
  // Episodes that end otherwise than by the rules.
  RunResult CutLanes(TakeResult why);
  RunResult AwaitArrival();
  void AbandonWithoutRow(const char* reason);
  void CountNotFinite(std::span<const Token> cut);

  void Announce();
  void AddWait(WaitReason reason, std::int64_t start_ns);

  const LaneLoopConfig config_;
  const std::unique_ptr<VecEnv> env_;
  const std::unique_ptr<Decider> decider_;
  TokenSource& tokens_;
  RowSink& sink_;
  LaneListener& listener_;
  const Clock& clock_ = MonotonicClock::Get();
  const int lanes_;

  LaneBook book_;
  std::int64_t wait_timeout_ns_ = 0;  // of the present call
  std::uint64_t row_ = 0;             // number of the next row
  int not_finite_run_ = 0;            // consecutive failing rows
  bool asked_ = false;                // row_ - 1 is published and awaits its answer
  std::int64_t asked_ns_ = 0;
  std::int64_t asked_env_ns_ = 0;
  bool claimed_ = false;  // claimed_row_ is ours but not complete
  RowView claimed_row_;
  std::vector<int> all_lanes_;             // [M] 0..M-1
  std::vector<int> playing_;               // [<= M] scratch: lanes that play
  std::vector<std::int32_t> actions_;      // [M] of the row before
  std::vector<std::int32_t> episode_ids_;  // [M] of the row before
  std::uint32_t acted_version_ = 0;        // that chose its actions, where rows are decided here
  LaneCounters counters_;
};

}  // namespace tetrion
