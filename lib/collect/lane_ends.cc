// How a lane loop's episodes end: by the rules, cut, or given back.
#include <string>

#include "lib/collect/lane_loop.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"

namespace tetrion {

RunResult LaneLoop::CutLanes(TakeResult why) {
  if (need_token_ < lanes_) {
    RowView row;
    if (!ClaimRow(row)) {
      const bool gone = answers_ != nullptr ? answers_->AnswererGone()
                                            : weights_ != nullptr && weights_->LearnerGone();
      if (why != TakeResult::kDrain || !gone) return RunResult::kWaiting;
      AbandonWithoutRow("drain");
      return RunResult::kDrained;
    }
    StepPlaying(row);
    CutLive(row);
    if (answers_ != nullptr) {
      Publish(row);
    } else {
      FinishRow(row);
    }
    if (why == TakeResult::kDrain && !abandoned_.empty()) {
      listener_.OnAbandoned(abandoned_, "drain");
    }
  }
  sink_.Flush();
  Announce();
  if (why == TakeResult::kDrain) return RunResult::kDrained;
  tokens_.AcceptFence();
  return RunResult::kWaiting;
}

// Cuts every lane that is still in play: its row becomes the last of an unfinished episode.
void LaneLoop::CutLive(const RowView& row) {
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

// Takes the lanes in play back; what their last row says of them is somebody else's business.
void LaneLoop::DropLive() {
  abandoned_.clear();
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (state_[l] != LaneState::kPlaying) continue;
    abandoned_.push_back(env_->token(lane));
    state_[l] = LaneState::kNeedsToken;
  }
  need_token_ = lanes_;
}

// Nobody will read a row that cuts the lanes: the ring just ends, as after a kill, or goes on with
// other episodes.
void LaneLoop::AbandonWithoutRow(const char* reason) {
  DropLive();
  if (!abandoned_.empty()) listener_.OnAbandoned(abandoned_, reason);
}

// After the lanes were cut: tells of them, and judges the policy.
void LaneLoop::CountNotFinite() {
  AddRelaxed<std::uint64_t>(counters_.not_finite, 1);
  listener_.OnAbandoned(abandoned_, "not_finite");
  if (++not_finite_run_ < config_.max_not_finite) return;
  const std::uint32_t version = policy_ != nullptr ? policy_->version() : answer_version_;
  throw Error(
      ExitCode::kTryAgain,
      "the policy gave NaN or infinite logits on " + std::to_string(not_finite_run_) +
          " rows in a row (version " + std::to_string(version) +
          "); lower it with ./tetrion up --resume RUN --learning-rate X, or begin anew with "
          "its best weights: ./tetrion up --init-from RUN/best --learning-rate X");
}

// Lanes still kPlaying whose row is_last have ended by the rules or by max_steps.
void LaneLoop::EndEpisodes(const RowView& row, std::uint32_t version) {
  for (int lane = 0; lane < lanes_; ++lane) {
    const auto l = static_cast<std::size_t>(lane);
    if (state_[l] != LaneState::kPlaying || (row.flags[l] & kIsLast) == 0) continue;
    EpisodeResult result = env_->Episode(lane);
    result.lane = static_cast<std::uint32_t>(lane);
    result.policy_version = version;
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
  AddRelaxed<std::uint64_t>(counters_.episodes, announced_.size());
  listener_.OnEpisodes(announced_);
}

}  // namespace tetrion
