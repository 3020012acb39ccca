#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/episodes/episode_batch.h"
#include "lib/episodes/episode_jobs.h"
#include "lib/episodes/episode_sink.h"
#include "lib/policy/policy.h"

namespace tetrion {

// The lanes of one worker that want an action, ascending; the spans are valid during the call.
struct ObservedLanes {
  const std::byte* observations = nullptr;  // [n, obs_bytes] u8
  // Owns their memory: who holds it may read them later, and finds there what is there then.
  std::shared_ptr<const void> storage;
  std::span<const std::int64_t> jobs;    // [n] the token each plays
  std::span<const std::int32_t> steps;   // [n] actions taken so far
  std::span<const std::uint64_t> masks;  // [n] bit a: action a is legal; empty without masks
};

// How many results an ObservationPolicy gave, the same in every call.
enum class ResultColumns : int { kActions = 1, kLogProbs = 2, kValues = 3 };

struct LaneDecisions {
  std::span<std::int32_t> actions;  // [n] in range
  std::span<float> log_probs;       // [n] zeros on entry
  std::span<float> values;          // [n] zeros on entry
};

// A policy that the library's user implements (Python): decides by observations. One instance per
// worker, called on its thread. May throw: the request fails with it.
class ObservationPolicy {
 public:
  virtual ~ObservationPolicy() = default;
  virtual ResultColumns Decide(const ObservedLanes& in, const LaneDecisions& out) = 0;
  // Throws `what` the policy did wrong ("returned ..."), and where: in lane i of `in`.
  [[noreturn]] virtual void Refuse(const ObservedLanes& in, std::size_t i,
                                   const std::string& what) const;
};

// Plays a fixed list of actions by step, starting over at its end.
class ActionListPolicy final : public Policy {
 public:
  // Throws Error(kUsage) naming the entry when the list is empty or leaves 0..count-1.
  ActionListPolicy(std::vector<std::int32_t> actions, const ActionSpec& spec);
  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  LoadResult LoadWeights(std::span<const std::byte>, std::uint32_t version) override {
    version_ = version;
    return LoadResult::kLoaded;
  }
  std::uint32_t version() const override { return version_; }

 private:
  const std::vector<std::int32_t> actions_;
  std::uint32_t version_ = 0;
};

// What a collector's lane loop has for a policy: lets the sink observe the row, then takes the
// actions from the request, a policy over records or one over observations. A failure is the
// request's; the worker gives its lanes up and lives.
class EpisodePolicy final : public Policy {
 public:
  // Exactly one of `inner` and `outside` is given. `jobs` tells collectors apart.
  EpisodePolicy(EpisodeSink& sink, const EpisodeJobs& jobs, std::unique_ptr<Policy> inner,
                std::unique_ptr<ObservationPolicy> outside);

  ActResult Act(const PolicyInput& in, const PolicyOutput& out) override;
  LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version) override;
  std::uint32_t version() const override { return 0; }

  // Whether the calling thread is in an observer or policy of the collector with these jobs, or in
  // one of a request that such a callback waits for: it must not wait for that collector's workers.
  static bool Inside(const EpisodeJobs& jobs);
  // All collectors for which Inside is true.
  static std::vector<const EpisodeJobs*> Enclosing();

 private:
  void Decide(const PolicyInput& in, const PolicyOutput& out);
  void ReplayActions(const PolicyInput& in, const PolicyOutput& out);
  void AskOutside(const PolicyInput& in, const PolicyOutput& out);

  EpisodeSink& sink_;
  const EpisodeJobs& jobs_;
  const std::unique_ptr<Policy> inner_;
  const std::unique_ptr<ObservationPolicy> outside_;
  // Scratch of AskOutside, [M].
  std::vector<int> lanes_;
  std::vector<std::int64_t> lane_jobs_;
  std::vector<std::int32_t> lane_steps_, lane_actions_;
  std::vector<std::uint64_t> lane_masks_;  // empty without masks
  std::vector<float> lane_log_probs_, lane_values_;
  std::shared_ptr<ZeroPages> gathered_;  // [M, obs_bytes]; null for one lane
};

}  // namespace tetrion
