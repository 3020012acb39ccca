#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/checkpoint/state.h"
#include "lib/frame/specs.h"
#include "lib/policy/policy.h"
#include "lib/run/run_config.h"

namespace tetrion {

// How a program acts with a run's policy.
struct RunPolicyConfig {
  std::uint64_t seed = 1;  // with token and step, every action drawn
  bool greedy = false;     // the most probable action instead of a draw
  int max_lanes = 1;       // most lanes of one Act
  int lane_ids = 0;        // lane ids are below it; 0: below max_lanes
};

// The policy of a run, on one thread. It must load weights, of the run's learner or a checkpoint,
// before it acts. `env` is what the policy sees. Every program that acts for a run asks here; it
// links setup_policy or, without the tensor library, setup_policy_plain. Throws Error(kUsage) when
// what the run needs is not in this program, or does not fit the environment.
std::unique_ptr<Policy> MakeRunPolicy(const RunConfig& run, const RunPolicyConfig& config,
                                      const EnvSpec& env);

// The same with the weights of one of the run's checkpoints. Throws Error(kConfig), too, when they
// do not fit or are not finite.
std::unique_ptr<Policy> LoadRunPolicy(const RunConfig& run, const RunPolicyConfig& config,
                                      const EnvSpec& env, const Checkpoint& checkpoint);

// What is wrong with weights of a checkpoint that `result` speaks of: `bytes` of them where
// `expected` fit. Throws Error(kConfig).
[[noreturn]] void RefuseWeights(const RunConfig& run, const Checkpoint& checkpoint,
                                LoadResult result, std::size_t bytes, std::size_t expected);

// The parameters that the run's policy acts with, out of a checkpoint of its trainer, as
// Policy::LoadWeights reads them. Another algorithm's checkpoint has none.
std::vector<std::byte> RunPolicyBlobOf(const RunConfig& run, const TrainerState& state);

}  // namespace tetrion
