#include "lib/episodes/episode_policy.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/frame/row_layout.h"

namespace tetrion {
namespace {

class InsideScope;
// Where this thread is. Not all zero: see tests/tidy/rules.py, thread_local.
struct Inside {
  const InsideScope* scope = nullptr;  // the innermost callback
  bool initialised = true;
};
thread_local Inside inside = {};

// A callback of the collector with `jobs`, called for `request`. Outlives neither.
class InsideScope {
 public:
  InsideScope(const EpisodeJobs& jobs, const BatchRequest& request)
      : jobs(jobs), request(request), outer(std::exchange(inside.scope, this)) {}
  ~InsideScope() { inside.scope = outer; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;

  const EpisodeJobs& jobs;
  const BatchRequest& request;
  const InsideScope* const outer;
};

}  // namespace

void ObservationPolicy::Refuse(const ObservedLanes& in, std::size_t i,
                               const std::string& what) const {
  throw Error(ExitCode::kUsage, "the policy (job " + std::to_string(in.jobs[i]) + ", step " +
                                    std::to_string(in.steps[i]) + ") " + what);
}

ActionListPolicy::ActionListPolicy(std::vector<std::int32_t> actions, const ActionSpec& spec)
    : actions_(std::move(actions)) {
  if (actions_.empty()) throw Error(ExitCode::kUsage, "a scripted policy needs an action");
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    if (actions_[i] >= 0 && actions_[i] < spec.count) continue;
    throw Error(ExitCode::kUsage, "scripted action " + std::to_string(i) + " is " +
                                      std::to_string(actions_[i]) + ": choose 0 to " +
                                      std::to_string(spec.count - 1));
  }
}

ActResult ActionListPolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  for (int i = 0; i < in.n; ++i) {
    out.action[i] = actions_[in.steps[i] % actions_.size()];
    out.log_prob[i] = 0.0F;
    if (out.value != nullptr) out.value[i] = 0.0F;
  }
  return ActResult::kOk;
}

EpisodePolicy::EpisodePolicy(EpisodeSink& sink, const EpisodeJobs& jobs,
                             std::unique_ptr<Policy> inner,
                             std::unique_ptr<ObservationPolicy> outside)
    : sink_(sink), jobs_(jobs), inner_(std::move(inner)), outside_(std::move(outside)) {
  TETRION_CHECK((inner_ == nullptr) != (outside_ == nullptr), "one policy decides");
  const std::size_t lanes = sink.lanes().size();
  lanes_.reserve(lanes);
  lane_jobs_.reserve(lanes);
  lane_steps_.reserve(lanes);
  lane_masks_.reserve(lanes);
  lane_actions_.resize(lanes);
  lane_log_probs_.resize(lanes);
  lane_values_.resize(lanes);
  if (outside_ != nullptr && lanes > 1) {
    gathered_ = std::make_shared<ZeroPages>(lanes * sink.obs_bytes());
  }
}

ActResult EpisodePolicy::Act(const PolicyInput& in, const PolicyOutput& out) {
  BatchRequest* const request = sink_.request();
  TETRION_CHECK(request != nullptr, "a row without a lane in play");
  if (request->cancelled.load(std::memory_order_relaxed)) {
    sink_.Refuse();
    return ActResult::kGiveUp;
  }
  const InsideScope scope(jobs_, *request);
  std::exception_ptr failure;
  try {
    if (!sink_.Observe(in)) return ActResult::kGiveUp;
    Decide(in, out);
    return ActResult::kOk;
  } catch (...) {
    failure = std::current_exception();
  }
  // Outside the handler: the request has the only reference, the requester frees it.
  request->Fail(std::move(failure));
  sink_.Refuse();
  return ActResult::kGiveUp;
}

void EpisodePolicy::Decide(const PolicyInput& in, const PolicyOutput& out) {
  if (!sink_.request()->actions.empty()) {
    ReplayActions(in, out);
  } else if (outside_ != nullptr) {
    AskOutside(in, out);
  } else {
    const PolicyOutput whole = {out.action, out.log_prob, sink_.values().data()};
    if (inner_->Act(in, whole) != ActResult::kOk) {
      throw Error(ExitCode::kTryAgain, "the policy's logits are not finite");
    }
  }
}

void EpisodePolicy::ReplayActions(const PolicyInput& in, const PolicyOutput& out) {
  const BatchRequest& request = *sink_.request();
  for (std::size_t l = 0; l < sink_.lanes().size(); ++l) {
    const EpisodeSink::Lane& lane = sink_.lanes()[l];
    out.action[l] = 0;
    out.log_prob[l] = 0.0F;
    sink_.values()[l] = 0.0F;
    if (lane.batch == nullptr || (in.flags[l] & kIsLast) != 0) continue;
    out.action[l] =
        request
            .actions[static_cast<std::size_t>(lane.job) * static_cast<std::size_t>(request.steps) +
                     static_cast<std::size_t>(lane.step)];
  }
}

void EpisodePolicy::AskOutside(const PolicyInput& in, const PolicyOutput& out) {
  BatchRequest& request = *sink_.request();
  lanes_.clear();
  lane_jobs_.clear();
  lane_steps_.clear();
  lane_masks_.clear();
  for (int l = 0; l < in.n; ++l) {
    const EpisodeSink::Lane& lane = sink_.lanes()[static_cast<std::size_t>(l)];
    out.action[l] = 0;
    out.log_prob[l] = 0.0F;
    if (lane.batch == nullptr || (in.flags[l] & kIsLast) != 0) continue;
    lanes_.push_back(l);
    lane_jobs_.push_back(static_cast<std::int64_t>(request.first_token) + lane.job);
    lane_steps_.push_back(lane.step);
    if (in.masks != nullptr) lane_masks_.push_back(in.masks[l]);
  }
  const std::size_t n = lanes_.size();
  if (n == 0) return;
  const std::size_t obs_bytes = sink_.obs_bytes();
  const auto lane_at = [&](std::size_t i) {
    return sink_.lanes()[static_cast<std::size_t>(lanes_[i])];
  };
  const std::byte* observations = sink_.Observation(lane_at(0));
  std::shared_ptr<const void> storage = sink_.Storage();
  if (n > 1) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(gathered_->data() + i * obs_bytes, sink_.Observation(lane_at(i)), obs_bytes);
    }
    observations = gathered_->data();
    storage = gathered_;
  }
  std::fill(lane_log_probs_.begin(), lane_log_probs_.end(), 0.0F);
  std::fill(lane_values_.begin(), lane_values_.end(), 0.0F);
  const ObservedLanes observed = {observations, std::move(storage), lane_jobs_, lane_steps_,
                                  lane_masks_};
  const auto columns = static_cast<int>(outside_->Decide(
      observed, {std::span(lane_actions_).first(n), std::span(lane_log_probs_).first(n),
                 std::span(lane_values_).first(n)}));
  int first = 0;
  if (!request.result_columns.compare_exchange_strong(first, columns) && first != columns) {
    outside_->Refuse(observed, 0,
                     "returned " + std::to_string(columns) + " arrays after having returned " +
                         std::to_string(first) + " before: return the same ones in every call");
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto l = static_cast<std::size_t>(lanes_[i]);
    out.action[l] = lane_actions_[i];
    out.log_prob[l] = lane_log_probs_[i];
    sink_.values()[l] = lane_values_[i];
  }
}

LoadResult EpisodePolicy::LoadWeights(std::span<const std::byte> blob, std::uint32_t version) {
  return inner_ != nullptr ? inner_->LoadWeights(blob, version) : LoadResult::kLoaded;
}

bool EpisodePolicy::Inside(const EpisodeJobs& jobs) {
  const std::vector<const EpisodeJobs*> all = Enclosing();
  return std::find(all.begin(), all.end(), &jobs) != all.end();
}

std::vector<const EpisodeJobs*> EpisodePolicy::Enclosing() {
  std::vector<const EpisodeJobs*> all;
  for (const InsideScope* scope = inside.scope; scope != nullptr; scope = scope->outer) {
    all.push_back(&scope->jobs);
    all.insert(all.end(), scope->request.inside_of.begin(), scope->request.inside_of.end());
  }
  return all;
}

}  // namespace tetrion
