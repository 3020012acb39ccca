#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lib/episodes/batch_collector.h"
#include "lib/policy/random_policy.h"

namespace tetrion::testing {

inline constexpr std::int64_t kPatienceNs = 120 * kNanosPerSecond;  // a hang, not slowness

// An observation policy out of a function.
class FunctionPolicy final : public ObservationPolicy {
 public:
  using Fn = std::function<ResultColumns(const ObservedLanes&, const LaneDecisions&)>;
  explicit FunctionPolicy(Fn fn) : fn_(std::move(fn)) {}
  ResultColumns Decide(const ObservedLanes& in, const LaneDecisions& out) override {
    return fn_(in, out);
  }

 private:
  const Fn fn_;
};

inline BatchCollectorConfig CollectorConfig(const char* env, int workers, int lanes, int steps) {
  BatchCollectorConfig config;
  config.env.name = env;
  config.env.lanes = lanes;
  config.env.seed = 11;
  config.workers = workers;
  config.steps = steps;
  return config;
}

// Uniformly random actions; views, streamed.
inline WorkerPartsFn RandomParts(const EnvConfig& env) {
  return [env](int) {
    const EnvSpec spec = MakeEnvSpec(env);
    return WorkerParts{.writer = MakeViewWriter(spec.obs, true),
                       .policy = std::make_unique<RandomPolicy>(env.seed, spec.action)};
  };
}

inline WorkerPartsFn FunctionParts(const EnvConfig& env, FunctionPolicy::Fn fn) {
  return [env, fn](int) {
    return WorkerParts{.writer = MakeViewWriter(MakeEnvSpec(env).obs, false),
                       .outside = std::make_unique<FunctionPolicy>(fn)};
  };
}

// What a request gives, as Python's request_episodes does it.
inline std::shared_ptr<EpisodeBatch> Request(BatchCollector& collector, BatchOrder order) {
  if (collector.Start(std::move(order)) != StartResult::kStarted) {
    throw std::logic_error("not started");
  }
  if (!collector.Wait(kPatienceNs)) throw std::logic_error("the request hangs");
  return collector.Finish();
}

// Everything of the first `episodes` rows as bytes, for comparisons.
inline std::vector<std::byte> Bytes(const EpisodeBatch& batch, int episodes) {
  std::vector<std::byte> all;
  const auto b = static_cast<std::size_t>(episodes);
  const std::size_t cells = b * static_cast<std::size_t>(batch.steps());
  const auto add = [&all](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    all.insert(all.end(), from, from + bytes);
  };
  add(batch.observations(), cells * batch.obs_bytes());
  add(batch.final_observations(), b * batch.obs_bytes());
  add(batch.rewards.data(), cells * 4);
  add(batch.actions.data(), cells * 4);
  add(batch.log_probs.data(), cells * 4);
  add(batch.values.data(), cells * 4);
  add(batch.dones.data(), cells);
  add(batch.action_masks.data(), cells * static_cast<std::size_t>(batch.mask_actions()));
  add(batch.lengths.data(), b * 4);
  add(batch.terminated.data(), b);
  add(batch.truncated.data(), b);
  add(batch.returns.data(), b * 4);
  add(batch.lines.data(), b * 4);
  add(batch.job_ids.data(), b * 8);
  return all;
}

}  // namespace tetrion::testing
