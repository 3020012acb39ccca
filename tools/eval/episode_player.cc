#include "tools/eval/episode_player.h"

#include <algorithm>
#include <cstring>

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

RowSpec SpecOf(const VecEnv& env) {
  return {.record_bytes = env.spec().obs.record_bytes,
          .lanes = static_cast<std::uint32_t>(env.lanes()),
          .has_mask = env.spec().action.has_mask};
}

}  // namespace

EpisodePlayer::EpisodePlayer(VecEnv& env, Policy& policy, int episodes, std::uint32_t max_steps,
                             std::uint32_t policy_record_bytes)
    : env_(env),
      policy_(policy),
      episodes_(episodes),
      max_steps_(max_steps),
      policy_record_bytes_(policy_record_bytes != 0 ? policy_record_bytes
                                                    : env.spec().obs.record_bytes),
      layout_(SpecOf(env)),
      row_bytes_(layout_.row_bytes + kColumnAlignBytes) {
  TETRION_CHECK(policy_record_bytes_ <= layout_.spec.record_bytes, "no such part of a record");
  auto base = reinterpret_cast<std::uintptr_t>(row_bytes_.data());
  row_ = RowView(layout_, row_bytes_.data() + (AlignUp(base, kColumnAlignBytes) - base));
  if (episodes != kEndless) results_.reserve(static_cast<std::size_t>(episodes));
  const auto lanes = static_cast<std::size_t>(env.lanes());
  actions_.resize(lanes);
  records_.resize(lanes * policy_record_bytes_);
  masks_.resize(lanes);
  tokens_.resize(lanes);
  flags_.resize(lanes);
  lane_ids_.resize(lanes);
  steps_.resize(lanes);
  chosen_.resize(lanes);
  log_probs_.resize(lanes);
  active_.reserve(lanes);
  choosing_.reserve(lanes);
  for (int lane = 0; lane < env.lanes() && TakeToken(lane); ++lane) active_.push_back(lane);
}

bool EpisodePlayer::TakeToken(int lane) {
  if (next_token_ == episodes_) return false;
  results_.emplace_back();
  env_.Reset(lane, {.id = static_cast<std::uint64_t>(next_token_++), .max_steps = max_steps_});
  return true;
}

bool EpisodePlayer::Step() {
  if (active_.empty()) return false;
  env_.Step(active_, actions_.data(), row_);
  choosing_.clear();
  std::size_t kept = 0;
  for (const int lane : active_) {
    bool goes_on = true;
    if ((row_.flags[lane] & kIsLast) != 0) {
      const EpisodeResult result = env_.Episode(lane);
      results_[result.token_id] = result;
      ++finished_;
      if ((row_.flags[lane] & kTerminated) != 0) ++deaths_;
      goes_on = TakeToken(lane);
    } else {
      choosing_.push_back(lane);
    }
    if (goes_on) active_[kept++] = lane;
  }
  active_.resize(kept);
  if (!choosing_.empty()) Choose(choosing_);
  return true;
}

std::vector<EpisodeResult> EpisodePlayer::Unfinished() const {
  std::vector<EpisodeResult> unfinished;
  for (const int lane : active_) unfinished.push_back(env_.Episode(lane));
  return unfinished;
}

void EpisodePlayer::Choose(const std::vector<int>& lanes) {
  const std::size_t record_bytes = layout_.spec.record_bytes;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const int lane = lanes[i];
    std::memcpy(records_.data() + i * policy_record_bytes_,
                row_.record + static_cast<std::size_t>(lane) * record_bytes, policy_record_bytes_);
    if (row_.mask != nullptr) masks_[i] = row_.mask[lane];
    flags_[i] = row_.flags[lane];
    lane_ids_[i] = static_cast<std::uint32_t>(lane);
    tokens_[i] = env_.token(lane).id;
    steps_[i] = env_.Episode(lane).length_steps;
  }
  const ActResult result = policy_.Act({.n = static_cast<int>(lanes.size()),
                                        .records = records_.data(),
                                        .masks = row_.mask == nullptr ? nullptr : masks_.data(),
                                        .flags = flags_.data(),
                                        .lane_ids = lane_ids_.data(),
                                        .token_ids = tokens_.data(),
                                        .steps = steps_.data()},
                                       {.action = chosen_.data(), .log_prob = log_probs_.data()});
  if (result != ActResult::kOk) {
    throw Error(ExitCode::kConfig, "the policy's output is not finite: take another checkpoint");
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    actions_[static_cast<std::size_t>(lanes[i])] = chosen_[i];
  }
}

}  // namespace tetrion
