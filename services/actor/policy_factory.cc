#include "services/actor/policy_factory.h"

#include "lib/core/error.h"
#include "lib/policy/random_policy.h"
#if defined(TETRION_WITH_TORCH)
#include "lib/policy/network_policy.h"
#endif

namespace tetrion::actor {

std::unique_ptr<Policy> MakeWorkerPolicy(const std::string& kind, const RunConfig& config,
                                         const EnvSpec& env) {
  if (kind == "random") return std::make_unique<RandomPolicy>(config.seed, env.action);
#if defined(TETRION_WITH_TORCH)
  return MakeNetworkPolicy(
      {.network = config.network, .seed = config.seed, .max_lanes = config.lanes}, env);
#else
  throw Error(
      ExitCode::kUsage,
      "this build has no networks (TETRION_TORCH=OFF); use --policy random or build the cpu "
      "preset");
#endif
}

}  // namespace tetrion::actor
