#include "lib/collect/lane_loop.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

// Episodes that may wait for their publication before the worker allocates: every lane twice per
// commit stride is far beyond what an environment can end.
constexpr std::size_t kEndedReserve = 4096;

void AddRelaxed(std::atomic<std::uint64_t>& counter, std::uint64_t delta) {
  counter.store(counter.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

}  // namespace

LaneLoop::LaneLoop(const LaneLoopConfig& config, std::unique_ptr<VecEnv> env,
                   std::unique_ptr<Policy> policy, TokenSource& tokens, RowSink& sink,
                   WeightsSource* weights, LaneListener& listener)
    : config_(config),
      env_(std::move(env)),
      policy_(std::move(policy)),
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

RunResult LaneLoop::RunOnce() {
  if (tokens_.State() != TakeResult::kToken) return CutLanes(tokens_.State());
  if (!RefreshWeights()) return RunResult::kWaiting;
  if (need_token_ > 0) {
    const RunResult taken = TakeTokens();
    if (taken != RunResult::kRow) return taken;
  }
  RowView row;
  if (!ClaimRow(row)) return RunResult::kWaiting;
  MakeRow(row);
  return RunResult::kRow;
}

bool LaneLoop::RefreshWeights() {
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
    if (result == TakeResult::kTimeout) {
      // The worker is about to block: what it has goes out first.
      sink_.Flush();
      Announce();
      const std::int64_t start_ns = clock_.NowNs();
      result = tokens_.Take(token, config_.wait_timeout_ns);
      AddWait(WaitReason::kToken, start_ns);
    }
    if (result == TakeResult::kTimeout) return RunResult::kWaiting;
    if (result != TakeResult::kToken) return CutLanes(result);
    env_->Reset(lane, token);
    state_[static_cast<std::size_t>(lane)] = LaneState::kPlaying;
    --need_token_;
  }
  return RunResult::kRow;
}

bool LaneLoop::ClaimRow(RowView& row) {
  if (!claimed_) {
    if (sink_.Claim(claimed_row_, 0) == ClaimResult::kFull) {
      sink_.Flush();
      Announce();
      const std::int64_t start_ns = clock_.NowNs();
      const ClaimResult result = sink_.Claim(claimed_row_, config_.wait_timeout_ns);
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
  env_->Step(all_lanes_, actions_.data(), row);
  const std::int64_t env_ns = clock_.NowNs() - start_ns;
  const ActResult acted = ActOn(row);
  const std::int64_t inference_ns = clock_.NowNs() - start_ns - env_ns;
  if (acted == ActResult::kNotFinite) AbandonLive(row);
  FinishRow(row);
  if (acted == ActResult::kNotFinite) {
    CountNotFinite();
  } else {
    not_finite_run_ = 0;
  }
  const std::uint32_t newest = weights_ == nullptr ? policy_->version() : weights_->NewestVersion();
  listener_.OnRow(env_ns, inference_ns, newest - std::min(newest, policy_->version()));
}

ActResult LaneLoop::ActOn(const RowView& row) {
  std::uint64_t first_rows = 0;
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    const EpisodeResult episode = env_->Episode(lane);
    token_ids_[l] = episode.token_id;
    steps_[l] = episode.length_steps;
    if ((row.flags[l] & kIsFirst) != 0) ++first_rows;
    // A finished game may have no legal action; its lane is acted on only to keep the batch whole.
    if (row.mask != nullptr) masks_[l] = row.mask[l] != 0 ? row.mask[l] : 1;
  }
  AddRelaxed(counters_.env_steps, static_cast<std::uint64_t>(lanes_) - first_rows);
  const PolicyInput in = {.n = lanes_,
                          .records = row.record,
                          .masks = row.mask != nullptr ? masks_.data() : nullptr,
                          .flags = row.flags,
                          .token_ids = token_ids_.data(),
                          .steps = steps_.data()};
  return policy_->Act(in, {.action = row.action, .log_prob = row.log_prob});
}

// Cuts every lane that is still in play: its row becomes the last of an unfinished episode.
void LaneLoop::AbandonLive(const RowView& row) {
  abandoned_.clear();
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (state_[l] != LaneState::kPlaying || (row.flags[l] & kIsLast) != 0) continue;
    row.flags[l] |= kIsLast | kTruncated;
    abandoned_.push_back(env_->token(lane));
    state_[l] = LaneState::kNeedsToken;
    ++need_token_;
  }
}

// Nobody will read a row that cuts the lanes: the ring just ends, as after a kill.
void LaneLoop::AbandonWithoutRow() {
  abandoned_.clear();
  for (const int lane : playing_) {
    abandoned_.push_back(env_->token(lane));
    state_[static_cast<std::size_t>(lane)] = LaneState::kNeedsToken;
  }
  need_token_ = lanes_;
  listener_.OnAbandoned(abandoned_, "drain");
}

void LaneLoop::FinishRow(const RowView& row) {
  for (std::size_t l = 0; l < actions_.size(); ++l) {
    if ((row.flags[l] & kIsLast) != 0) {
      row.action[l] = 0;
      row.log_prob[l] = 0.0F;
    }
  }
  EndEpisodes(row);
  std::memcpy(actions_.data(), row.action, actions_.size() * sizeof(std::int32_t));
  std::memcpy(episode_ids_.data(), row.episode_id, episode_ids_.size() * sizeof(std::int32_t));
  *row.header = {.row = row_, .policy_version = policy_->version(), .reserved = 0};
  counters_.policy_version.store(policy_->version(), std::memory_order_relaxed);
  sink_.Complete();
  claimed_ = false;
  ++row_;
  AddRelaxed(counters_.rows, 1);
  if (!ended_.empty()) Announce();
}

void LaneLoop::CountNotFinite() {
  AddRelaxed(counters_.not_finite, 1);
  listener_.OnAbandoned(abandoned_, "not_finite");
  if (++not_finite_run_ < config_.max_not_finite) return;
  throw Error(ExitCode::kTryAgain,
              "the policy gave NaN or infinite logits on " + std::to_string(not_finite_run_) +
                  " rows in a row (version " + std::to_string(policy_->version()) +
                  "); resume from an earlier checkpoint or lower the learning rate");
}

// Lanes still kPlaying whose row is_last have ended by the rules or by max_steps.
void LaneLoop::EndEpisodes(const RowView& row) {
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (state_[l] != LaneState::kPlaying || (row.flags[l] & kIsLast) == 0) continue;
    EpisodeResult result = env_->Episode(lane);
    result.lane = static_cast<std::uint32_t>(lane);
    result.policy_version = policy_->version();
    ended_.push_back({row_, result});
    state_[l] = LaneState::kNeedsToken;
    ++need_token_;
  }
}

void LaneLoop::Announce() {
  const std::uint64_t published = sink_.PublishedRows();
  announced_.clear();
  for (const Ended& ended : ended_) {
    if (ended.last_row >= published) break;
    announced_.push_back(ended.result);
  }
  if (announced_.empty()) return;
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(announced_.size()));
  AddRelaxed(counters_.episodes, announced_.size());
  listener_.OnEpisodes(announced_);
}

RunResult LaneLoop::CutLanes(TakeResult why) {
  playing_.clear();
  for (int lane = 0; lane < lanes_; ++lane) {
    if (state_[static_cast<std::size_t>(lane)] == LaneState::kPlaying) playing_.push_back(lane);
  }
  if (!playing_.empty()) {
    RowView row;
    if (!ClaimRow(row)) {
      const bool hopeless =
          why == TakeResult::kDrain && weights_ != nullptr && weights_->LearnerGone();
      if (!hopeless) return RunResult::kWaiting;
      AbandonWithoutRow();
      return RunResult::kDrained;
    }
    env_->Step(playing_, actions_.data(), row);
    for (int lane = 0; lane < lanes_; ++lane) {
      if (state_[static_cast<std::size_t>(lane)] != LaneState::kPlaying) WriteIdleLane(row, lane);
    }
    AbandonLive(row);
    FinishRow(row);
    if (why == TakeResult::kDrain) listener_.OnAbandoned(abandoned_, "drain");
  }
  sink_.Flush();
  Announce();
  if (why == TakeResult::kDrain) return RunResult::kDrained;
  tokens_.AcceptFence();
  return RunResult::kWaiting;
}

// A lane without an episode in the row that cuts the others: an empty record that ends at once.
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

void LaneLoop::AddWait(WaitReason reason, std::int64_t start_ns) {
  std::atomic<std::int64_t>& total = counters_.wait_ns[static_cast<int>(reason)];
  total.store(total.load(std::memory_order_relaxed) + clock_.NowNs() - start_ns,
              std::memory_order_relaxed);
}

}  // namespace tetrion
