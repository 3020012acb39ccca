#include "lib/collect/lane_loop.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::int64_t kArrivalPollNs = kNanosPerMilli;

}  // namespace

LaneLoop::LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
                   std::unique_ptr<Decider> decider, TokenSource& tokens, RowSink& sink,
                   LaneListener& listener)
    : config_(config),
      env_(std::move(env)),
      decider_(std::move(decider)),
      tokens_(tokens),
      sink_(sink),
      listener_(listener),
      lanes_(env_->lanes()),
      book_(lanes_),
      all_lanes_(static_cast<std::size_t>(lanes_)),
      actions_(static_cast<std::size_t>(lanes_), 0),
      episode_ids_(static_cast<std::size_t>(lanes_), 0) {
  TETRION_CHECK(static_cast<int>(sink_.layout().spec.lanes) == lanes_,
                "sink and env differ in lanes");
  std::iota(all_lanes_.begin(), all_lanes_.end(), 0);
  playing_.reserve(static_cast<std::size_t>(lanes_));
}

RunResult LaneLoop::RunOnce(std::int64_t wait_timeout_ns) {
  wait_timeout_ns_ = wait_timeout_ns;
  if (asked_) {
    const RunResult answered = TakeAnswer();
    if (answered != RunResult::kRow) return answered;
  }
  if (tokens_.State() != TakeResult::kToken) return CutLanes(tokens_.State());
  if (!CanDecide()) return RunResult::kWaiting;
  if (book_.need_token() > 0) {
    const RunResult taken = TakeTokens();
    if (taken != RunResult::kRow) return taken;
  }
  RowView row;
  if (!ClaimRow(row)) return RunResult::kWaiting;
  MakeRow(row);
  return RunResult::kRow;
}

// Of the row published last; kRow when the next one can be made.
RunResult LaneLoop::TakeAnswer() {
  const std::int64_t start_ns = clock_.NowNs();
  const AnswerResult result = decider_->Take(row_ - 1, actions_.data(), wait_timeout_ns_);
  AddWait(decider_->waits_for(), start_ns);
  switch (result) {
    case AnswerResult::kTimeout:
      if (tokens_.State() != TakeResult::kDrain || !decider_->PeerGone()) {
        return RunResult::kWaiting;
      }
      AbandonWithoutRow("drain");
      return RunResult::kDrained;
    case AnswerResult::kReset:
      AbandonWithoutRow("reset");
      asked_ = false;
      return RunResult::kWaiting;
    case AnswerResult::kNotFinite:
      asked_ = false;
      CountNotFinite(book_.Drop(*env_));
      return RunResult::kRow;
    case AnswerResult::kBroken:  // the decider has thrown
    case AnswerResult::kAnswer:
      break;
  }
  asked_ = false;
  not_finite_run_ = 0;
  counters_.policy_version.store(decider_->version(), std::memory_order_relaxed);
  listener_.OnRow(asked_env_ns_, clock_.NowNs() - asked_ns_);
  return RunResult::kRow;
}

// Whether a row made now could be decided.
bool LaneLoop::CanDecide() {
  AnswererState state = decider_->Look(0);
  if (state == AnswererState::kReady) return true;
  if (state == AnswererState::kAbsent) {
    const std::int64_t start_ns = clock_.NowNs();
    state = decider_->Look(wait_timeout_ns_);
    AddWait(decider_->waits_for(), start_ns);
  }
  if (state == AnswererState::kReset) AbandonWithoutRow("reset");
  return state == AnswererState::kReady;
}

RunResult LaneLoop::TakeTokens() {
  for (int lane = 0; lane < lanes_; ++lane) {
    if (book_.Plays(lane)) continue;
    Token token;
    TakeResult result = tokens_.Take(token, 0);
    if (result == TakeResult::kIdle && book_.need_token() < lanes_) return RunResult::kRow;
    if (result == TakeResult::kTimeout || result == TakeResult::kIdle) {
      // The worker is about to block: what it has goes out first.
      sink_.Flush();
      Announce();
      const std::int64_t start_ns = clock_.NowNs();
      result = tokens_.Take(token, wait_timeout_ns_);
      AddWait(WaitReason::kToken, start_ns);
    }
    if (result == TakeResult::kTimeout || result == TakeResult::kIdle) return RunResult::kWaiting;
    if (result != TakeResult::kToken) return CutLanes(result);
    env_->Reset(lane, token);
    sink_.OnToken(lane, token);
    book_.Begin(lane);
  }
  return RunResult::kRow;
}

bool LaneLoop::ClaimRow(RowView& row) {
  if (!claimed_) {
    if (sink_.Claim(claimed_row_, 0) == ClaimResult::kFull) {
      sink_.Flush();
      Announce();
      const std::int64_t start_ns = clock_.NowNs();
      const ClaimResult result = sink_.Claim(claimed_row_, wait_timeout_ns_);
      AddWait(WaitReason::kRing, start_ns);
      if (result == ClaimResult::kFull) return false;
    }
    claimed_ = true;
  }
  row = claimed_row_;
  return true;
}

void LaneLoop::MakeRow(const RowView& row) {
  const std::int64_t start_ns = clock_.NowNs();
  StepPlaying(row);
  const std::int64_t env_ns = clock_.NowNs() - start_ns;
  const Decision decision = decider_->Decide(row, *env_);
  switch (decision) {
    case Decision::kLater:
      asked_env_ns_ = env_ns;
      Publish(row);
      return;  // told of once it is answered
    case Decision::kDecided:
      FinishRow(row);
      not_finite_run_ = 0;
      break;
    case Decision::kNotFinite:
    case Decision::kGiveUp: {
      const std::span<const Token> cut = book_.Cut(row, *env_);
      FinishRow(row);
      if (decision == Decision::kNotFinite) {
        CountNotFinite(cut);
      } else if (!cut.empty()) {
        listener_.OnAbandoned(cut, "policy");
      }
      break;
    }
  }
  listener_.OnRow(env_ns, clock_.NowNs() - start_ns - env_ns);
}

// The playing lanes' columns, and empty ones for the idle.
void LaneLoop::StepPlaying(const RowView& row) {
  if (book_.need_token() == 0) {
    env_->Step(all_lanes_, actions_.data(), row);
  } else {
    playing_.clear();
    for (int lane = 0; lane < lanes_; ++lane) {
      if (book_.Plays(lane)) {
        playing_.push_back(lane);
      } else {
        WriteIdleLane(row, lane);
      }
    }
    env_->Step(playing_, actions_.data(), row);
  }
  std::uint64_t steps = 0;
  for (int lane = 0; lane < lanes_; ++lane) {
    if (book_.Plays(lane) && (row.flags[lane] & kIsFirst) == 0) ++steps;
  }
  AddRelaxed<std::uint64_t>(counters_.env_steps, steps);
}

// A lane without an episode: an empty record that ends at once.
void LaneLoop::WriteIdleLane(const RowView& row, int lane) {
  const auto l = static_cast<std::size_t>(lane);
  const std::size_t record_bytes = sink_.layout().spec.record_bytes;
  std::memset(row.record + l * record_bytes, 0, record_bytes);
  if (row.mask != nullptr) row.mask[l] = 1;
  row.reward[l] = 0.0F;
  row.flags[l] = kIsLast | kTruncated;
  row.cont[l] = 1.0F;
  row.episode_id[l] = episode_ids_[l];
}

// A row decided here: complete as soon as the episodes that ended in it are noted.
void LaneLoop::FinishRow(const RowView& row) {
  for (std::size_t l = 0; l < actions_.size(); ++l) {
    if ((row.flags[l] & kIsLast) != 0) {
      row.action[l] = 0;
      row.log_prob[l] = 0.0F;
    }
  }
  std::memcpy(actions_.data(), row.action, actions_.size() * sizeof(std::int32_t));
  const std::uint32_t version = decider_->version();
  counters_.policy_version.store(version, std::memory_order_relaxed);
  if (acted_version_ != 0 && version > acted_version_) {
    listener_.OnNewWeights(version - acted_version_);
  }
  Complete(row, std::exchange(acted_version_, version));
}

// A row that is decided later: goes out at once, its actions and version still empty.
void LaneLoop::Publish(const RowView& row) {
  std::memset(row.action, 0, actions_.size() * sizeof(std::int32_t));
  std::memset(row.log_prob, 0, actions_.size() * sizeof(float));
  asked_ = true;
  asked_ns_ = clock_.NowNs();
  Complete(row, decider_->version());
  sink_.Flush();
  Announce();
}

// `acted`: the version that chose the actions which led to the row. The row's header says who chose
// its own, where it is decided here.
void LaneLoop::Complete(const RowView& row, std::uint32_t acted) {
  book_.EndEpisodes(row, row_, acted, *env_);
  std::memcpy(episode_ids_.data(), row.episode_id, episode_ids_.size() * sizeof(std::int32_t));
  *row.header = {.row = row_, .policy_version = decider_->version(), .reserved = 0};
  sink_.Complete();
  claimed_ = false;
  ++row_;
  AddRelaxed<std::uint64_t>(counters_.rows, 1);
  if (book_.HasEnded()) Announce();
}

RunResult LaneLoop::CutLanes(TakeResult why) {
  if (book_.need_token() < lanes_) {
    RowView row;
    if (!ClaimRow(row)) {
      if (why != TakeResult::kDrain || !decider_->PeerGone()) return RunResult::kWaiting;
      AbandonWithoutRow("drain");
      return RunResult::kDrained;
    }
    StepPlaying(row);
    const std::span<const Token> cut = book_.Cut(row, *env_);
    if (decider_->answers_later()) {
      Publish(row);
    } else {
      FinishRow(row);
    }
    if (why == TakeResult::kDrain && !cut.empty()) listener_.OnAbandoned(cut, "drain");
  }
  sink_.Flush();
  Announce();
  if (why == TakeResult::kDrain) return AwaitArrival();
  tokens_.AcceptFence();
  return RunResult::kWaiting;
}

// Of the last episodes' rows, where the other side acknowledges them later. What is not announced
// by the end of the drain is played again.
RunResult LaneLoop::AwaitArrival() {
  if (!book_.HasEnded() || decider_->PeerGone()) return RunResult::kDrained;
  const std::int64_t start_ns = clock_.NowNs();
  const std::int64_t pause_ns = std::min(wait_timeout_ns_, kArrivalPollNs);
  std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
  AddWait(WaitReason::kRing, start_ns);
  return RunResult::kWaiting;
}

// Cuts the lanes without a row that says so, where no reader would see it: the ring just ends, as
// after a kill, or goes on with other episodes.
void LaneLoop::AbandonWithoutRow(const char* reason) {
  const std::span<const Token> dropped = book_.Drop(*env_);
  if (!dropped.empty()) listener_.OnAbandoned(dropped, reason);
}

// After the lanes were cut: reports their tokens, and counts the policy's failures in a row.
void LaneLoop::CountNotFinite(std::span<const Token> cut) {
  AddRelaxed<std::uint64_t>(counters_.not_finite, 1);
  listener_.OnAbandoned(cut, "not_finite");
  if (++not_finite_run_ < config_.max_not_finite) return;
  throw Error(
      ExitCode::kTryAgain,
      "the policy gave NaN or infinite logits on " + std::to_string(not_finite_run_) +
          " rows in a row (version " + std::to_string(decider_->version()) +
          "); lower the learning rate with ./tetrion up --resume RUN --learning-rate X, or begin "
          "anew with its best weights: ./tetrion up --init-from RUN/best --learning-rate X");
}

void LaneLoop::Announce() {
  const std::size_t announced = book_.Announce(sink_.PublishedRows(), listener_);
  AddRelaxed<std::uint64_t>(counters_.episodes, announced);
}

void LaneLoop::AddWait(WaitReason reason, std::int64_t start_ns) {
  AddRelaxed(counters_.wait_ns[static_cast<int>(reason)], clock_.NowNs() - start_ns);
}

}  // namespace tetrion
