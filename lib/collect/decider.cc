#include "lib/collect/decider.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

// Weights are looked for once a millisecond while the learner has not published any.
constexpr std::int64_t kWeightsPollNs = kNanosPerMilli;

}  // namespace

AnswerResult Decider::Take(std::uint64_t, std::int32_t*, std::int64_t) {
  TETRION_CHECK(false, "a row that was decided at once has no answer to wait for");
}

LocalDecider::LocalDecider(std::unique_ptr<Policy> policy, WeightsSource* weights, int lanes)
    : policy_(std::move(policy)),
      weights_(weights),
      lane_ids_(static_cast<std::size_t>(lanes)),
      masks_(static_cast<std::size_t>(lanes)),
      token_ids_(static_cast<std::size_t>(lanes)),
      steps_(static_cast<std::size_t>(lanes)) {
  std::iota(lane_ids_.begin(), lane_ids_.end(), 0U);
}

AnswererState LocalDecider::Look(std::int64_t timeout_ns) {
  if (Fresh()) return AnswererState::kReady;
  if (timeout_ns <= 0) return AnswererState::kAbsent;
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns, kWeightsPollNs)));
  return Fresh() ? AnswererState::kReady : AnswererState::kAbsent;
}

Decision LocalDecider::Decide(const RowView& row, const VecEnv& env) {
  for (std::size_t l = 0; l < lane_ids_.size(); ++l) {
    const EpisodeResult episode = env.Episode(static_cast<int>(l));
    token_ids_[l] = episode.token_id;
    steps_[l] = episode.length_steps;
    // A finished game may have no legal action; its lane is acted on only to keep the batch whole.
    if (row.mask != nullptr) masks_[l] = row.mask[l] != 0 ? row.mask[l] : 1;
  }
  const PolicyInput in = {.n = static_cast<int>(lane_ids_.size()),
                          .records = row.record,
                          .masks = row.mask != nullptr ? masks_.data() : nullptr,
                          .flags = row.flags,
                          .lane_ids = lane_ids_.data(),
                          .token_ids = token_ids_.data(),
                          .steps = steps_.data()};
  switch (policy_->Act(in, {.action = row.action, .log_prob = row.log_prob})) {
    case ActResult::kOk:
      return Decision::kDecided;
    case ActResult::kNotFinite:
      return Decision::kNotFinite;
    case ActResult::kGiveUp:
      break;
  }
  return Decision::kGiveUp;
}

AnswererState StreamedDecider::Look(std::int64_t timeout_ns) {
  const AnswererState state = client_.Look(timeout_ns);
  if (state == AnswererState::kBroken) throw Error(ExitCode::kTryAgain, client_.problem());
  return state;
}

AnswerResult StreamedDecider::Take(std::uint64_t row, std::int32_t* actions,
                                   std::int64_t timeout_ns) {
  const AnswerResult result = client_.Take(row, actions, version_, timeout_ns);
  if (result == AnswerResult::kBroken) throw Error(ExitCode::kTryAgain, client_.problem());
  return result;
}

}  // namespace tetrion
