#include "lib/collect/lane_loop.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

// Episodes that may wait for their publication before the worker allocates: every lane twice per
// commit stride is far beyond what an environment can end.
constexpr std::size_t kEndedReserve = 4096;

}  // namespace

LaneLoop::LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
                   std::unique_ptr<Policy> policy, TokenSource& tokens, RowSink& sink,
                   WeightsSource* weights, LaneListener& listener)
    : LaneLoop(config, std::move(env), std::move(policy), nullptr, tokens, sink, weights,
               listener) {}

LaneLoop::LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
                   InferenceClient& answers, TokenSource& tokens, RowSink& sink,
                   LaneListener& listener)
    : LaneLoop(config, std::move(env), nullptr, &answers, tokens, sink, nullptr, listener) {}

LaneLoop::LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
                   std::unique_ptr<Policy> policy, InferenceClient* answers, TokenSource& tokens,
                   RowSink& sink, WeightsSource* weights, LaneListener& listener)
    : config_(config),
      env_(std::move(env)),
      policy_(std::move(policy)),
      answers_(answers),
      tokens_(tokens),
      sink_(sink),
      weights_(weights),
      listener_(listener),
      lanes_(env_->lanes()),
      need_token_(lanes_),
      state_(static_cast<std::size_t>(lanes_), LaneState::kNeedsToken),
      all_lanes_(static_cast<std::size_t>(lanes_)),
      actions_(static_cast<std::size_t>(lanes_), 0),
      episode_ids_(static_cast<std::size_t>(lanes_), 0),
      masks_(static_cast<std::size_t>(lanes_)),
      token_ids_(static_cast<std::size_t>(lanes_)),
      steps_(static_cast<std::size_t>(lanes_)) {
  TETRION_CHECK(static_cast<int>(sink_.layout().spec.lanes) == lanes_,
                "sink and env differ in lanes");
  std::iota(all_lanes_.begin(), all_lanes_.end(), 0);
  playing_.reserve(static_cast<std::size_t>(lanes_));
  abandoned_.reserve(static_cast<std::size_t>(lanes_));
  ended_.reserve(kEndedReserve);
  announced_.reserve(kEndedReserve);
}

RunResult LaneLoop::RunOnce(std::int64_t wait_timeout_ns) {
  wait_timeout_ns_ = wait_timeout_ns;
  if (asked_) {
    const RunResult answered = TakeAnswer();
    if (answered != RunResult::kRow) return answered;
  }
  if (tokens_.State() != TakeResult::kToken) return CutLanes(tokens_.State());
  if (!CanDecide()) return RunResult::kWaiting;
  if (need_token_ > 0) {
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
  const AnswerResult result =
      answers_->Take(row_ - 1, actions_.data(), answer_version_, wait_timeout_ns_);
  AddWait(WaitReason::kAnswer, start_ns);
  switch (result) {
    case AnswerResult::kTimeout:
      if (tokens_.State() != TakeResult::kDrain || !answers_->AnswererGone()) {
        return RunResult::kWaiting;
      }
      AbandonWithoutRow("drain");
      return RunResult::kDrained;
    case AnswerResult::kReset:
      AbandonWithoutRow("reset");
      asked_ = false;
      return RunResult::kWaiting;
    case AnswerResult::kBroken:
      throw Error(ExitCode::kTryAgain, answers_->problem());
    case AnswerResult::kNotFinite:
      DropLive();
      asked_ = false;
      CountNotFinite();
      return RunResult::kRow;
    case AnswerResult::kAnswer:
      break;
  }
  asked_ = false;
  not_finite_run_ = 0;
  counters_.policy_version.store(answer_version_, std::memory_order_relaxed);
  listener_.OnRow(asked_env_ns_, clock_.NowNs() - asked_ns_, 0);
  return RunResult::kRow;
}

// Whether a row made now could be decided.
bool LaneLoop::CanDecide() {
  if (answers_ != nullptr) {
    const std::int64_t start_ns = clock_.NowNs();
    const AnswererState state = answers_->Look(wait_timeout_ns_);
    if (state == AnswererState::kReady) return true;
    if (state == AnswererState::kBroken) throw Error(ExitCode::kTryAgain, answers_->problem());
    AddWait(WaitReason::kAnswer, start_ns);
    if (state == AnswererState::kReset) AbandonWithoutRow("reset");
    return false;
  }
  if (weights_ == nullptr || weights_->Refresh(*policy_)) return true;
  const std::int64_t start_ns = clock_.NowNs();
  // No version exists yet: the learner has not started.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  AddWait(WaitReason::kWeights, start_ns);
  return false;
}

RunResult LaneLoop::TakeTokens() {
  for (int lane = 0; lane < lanes_; ++lane) {
    if (state_[static_cast<std::size_t>(lane)] != LaneState::kNeedsToken) continue;
    Token token;
    TakeResult result = tokens_.Take(token, 0);
    if (result == TakeResult::kIdle && need_token_ < lanes_) return RunResult::kRow;
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
    Begin(lane, token);
  }
  return RunResult::kRow;
}

void LaneLoop::Begin(int lane, const Token& token) {
  env_->Reset(lane, token);
  sink_.OnToken(lane, token);
  state_[static_cast<std::size_t>(lane)] = LaneState::kPlaying;
  --need_token_;
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
  if (answers_ != nullptr) {
    asked_env_ns_ = env_ns;
    Publish(row);
    return;
  }
  Decide(row);
  const std::int64_t inference_ns = clock_.NowNs() - start_ns - env_ns;
  const std::uint32_t newest = weights_ == nullptr ? policy_->version() : weights_->NewestVersion();
  listener_.OnRow(env_ns, inference_ns, newest - std::min(newest, policy_->version()));
}

// The playing lanes' columns, and empty ones for the idle.
void LaneLoop::StepPlaying(const RowView& row) {
  if (need_token_ == 0) {
    env_->Step(all_lanes_, actions_.data(), row);
  } else {
    playing_.clear();
    for (int lane = 0; lane < lanes_; ++lane) {
      if (state_[static_cast<std::size_t>(lane)] == LaneState::kPlaying) {
        playing_.push_back(lane);
      } else {
        WriteIdleLane(row, lane);
      }
    }
    env_->Step(playing_, actions_.data(), row);
  }
  std::uint64_t steps = 0;
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (state_[l] == LaneState::kPlaying && (row.flags[l] & kIsFirst) == 0) ++steps;
  }
  AddRelaxed<std::uint64_t>(counters_.env_steps, steps);
}

// By the loop's own policy.
void LaneLoop::Decide(const RowView& row) {
  const ActResult acted = ActOn(row);
  if (acted == ActResult::kOk) {
    FinishRow(row);
    not_finite_run_ = 0;
    return;
  }
  CutLive(row);
  FinishRow(row);
  if (acted == ActResult::kNotFinite) {
    CountNotFinite();
  } else if (!abandoned_.empty()) {
    listener_.OnAbandoned(abandoned_, "policy");
  }
}

ActResult LaneLoop::ActOn(const RowView& row) {
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    const EpisodeResult episode = env_->Episode(lane);
    token_ids_[l] = episode.token_id;
    steps_[l] = episode.length_steps;
    // A finished game may have no legal action; its lane is acted on only to keep the batch whole.
    if (row.mask != nullptr) masks_[l] = row.mask[l] != 0 ? row.mask[l] : 1;
  }
  const PolicyInput in = {.n = lanes_,
                          .records = row.record,
                          .masks = row.mask != nullptr ? masks_.data() : nullptr,
                          .flags = row.flags,
                          .token_ids = token_ids_.data(),
                          .steps = steps_.data()};
  return policy_->Act(in, {.action = row.action, .log_prob = row.log_prob});
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
  counters_.policy_version.store(policy_->version(), std::memory_order_relaxed);
  Complete(row, policy_->version());
}

// A row that is decided elsewhere: goes out at once, its actions and version still empty.
void LaneLoop::Publish(const RowView& row) {
  std::memset(row.action, 0, actions_.size() * sizeof(std::int32_t));
  std::memset(row.log_prob, 0, actions_.size() * sizeof(float));
  asked_ = true;
  asked_ns_ = clock_.NowNs();
  Complete(row, answer_version_);
  sink_.Flush();
  Announce();
}

// `version` chose the actions that led to the row's episodes' ends; in a row decided here also the
// row's own.
void LaneLoop::Complete(const RowView& row, std::uint32_t version) {
  EndEpisodes(row, version);
  std::memcpy(episode_ids_.data(), row.episode_id, episode_ids_.size() * sizeof(std::int32_t));
  *row.header = {.row = row_, .policy_version = version, .reserved = 0};
  sink_.Complete();
  claimed_ = false;
  ++row_;
  AddRelaxed<std::uint64_t>(counters_.rows, 1);
  if (!ended_.empty()) Announce();
}

void LaneLoop::AddWait(WaitReason reason, std::int64_t start_ns) {
  AddRelaxed(counters_.wait_ns[static_cast<int>(reason)], clock_.NowNs() - start_ns);
}

}  // namespace tetrion
