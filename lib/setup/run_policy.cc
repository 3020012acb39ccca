#include "lib/setup/run_policy.h"

#include <string>

#include "lib/core/error.h"
#include "lib/policy/network_policy.h"
#if defined(TETRION_WITH_TORCH)
#include "lib/policy/dreamer_policy.h"
#include "lib/rl/dreamer/model_shape.h"
#else
#include "lib/core/no_tensor_library.h"
#include "lib/setup/tensor_library.h"
#endif

namespace tetrion {
namespace {

constexpr const char* kDreamer = "dreamer";
// The model's modules that act, in the order of its layout.
constexpr const char* kDreamerActing[] = {"encoder.", "core.", "posterior.", "actor."};

#if defined(TETRION_WITH_TORCH)

std::unique_ptr<Policy> MakeDreamer(const RunConfig& run, const RunPolicyConfig& config,
                                    const EnvSpec& env) {
  return MakeDreamerPolicy({.shape = ModelShapeOf(env, run.dreamer),
                            .seed = config.seed,
                            .greedy = config.greedy,
                            .max_lanes = config.max_lanes,
                            .lane_ids = config.lane_ids == 0 ? config.max_lanes : config.lane_ids},
                           env);
}

#else

// Of a run that needs the tensor library. An actor has other ways out than a build with it.
[[noreturn]] void RefuseWithout(const RunConfig& run, const EnvSpec& env) {
  const std::string what = run.algo == kDreamer
                               ? "algo dreamer on " + env.name + ", size " + run.dreamer.size + ","
                               : "network conv";
  throw Error(ExitCode::kUsage,
              NoTensorLibrary(what) +
                  "; in containers take the image actor-torch (TETRION_ACTOR_IMAGE=actor-torch); "
                  "of actors the learner can decide instead (--inference streamed)");
}

#endif

}  // namespace

std::unique_ptr<Policy> MakeRunPolicy(const RunConfig& run, const RunPolicyConfig& config,
                                      const EnvSpec& env) {
#if defined(TETRION_WITH_TORCH)
  if (run.algo == kDreamer) return MakeDreamer(run, config, env);
#else
  if (NeedsTensorLibrary(run)) RefuseWithout(run, env);
#endif
  return MakeNetworkPolicy({.network = run.network,
                            .scorer_units = run.scorer_units,
                            .precision = PrecisionOf(run.precision),
                            .seed = config.seed,
                            .blank = true,
                            .greedy = config.greedy,
                            .max_lanes = config.max_lanes},
                           env);
}

std::unique_ptr<Policy> LoadRunPolicy(const RunConfig& run, const RunPolicyConfig& config,
                                      const EnvSpec& env, const Checkpoint& checkpoint) {
  auto policy = MakeRunPolicy(run, config, env);
  const std::vector<std::byte> blob = RunPolicyBlobOf(run, checkpoint.state);
  const auto version = static_cast<std::uint32_t>(checkpoint.info.policy_version);
  const LoadResult result = policy->LoadWeights(blob, version);
  if (result != LoadResult::kLoaded) {
    RefuseWeights(run, checkpoint, result, blob.size(), policy->WeightsBytes());
  }
  return policy;
}

void RefuseWeights(const RunConfig& run, const Checkpoint& checkpoint, LoadResult result,
                   std::size_t bytes, std::size_t expected) {
  if (result == LoadResult::kNotFinite) {
    throw Error(ExitCode::kConfig,
                checkpoint.path + " holds NaN or infinity: take another checkpoint of the run");
  }
  const std::string acting =
      run.algo == kDreamer ? "DreamerV3 of size " + run.dreamer.size : "network " + run.network;
  throw Error(ExitCode::kConfig, checkpoint.path + " has " + std::to_string(bytes) +
                                     " bytes of weights, " + acting + " of this run needs " +
                                     std::to_string(expected));
}

std::vector<std::byte> RunPolicyBlobOf(const RunConfig& run, const TrainerState& state) {
  if (run.algo != kDreamer) return PolicyBlobOf(state);
  std::vector<std::string> acting;
  for (const char* module : kDreamerActing) acting.push_back(std::string(kModelPrefix) + module);
  return BlobOf(state, acting);
}

}  // namespace tetrion
