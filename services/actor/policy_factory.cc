#include "services/actor/policy_factory.h"

#include "lib/policy/random_policy.h"
#include "lib/setup/run_policy.h"

namespace tetrion::actor {

std::unique_ptr<Policy> MakeWorkerPolicy(const std::string& kind, const RunConfig& config,
                                         const EnvSpec& env) {
  if (kind == "random") return std::make_unique<RandomPolicy>(config.seed, env.action);
  return MakeRunPolicy(config, {.seed = config.seed, .max_lanes = config.lanes}, env);
}

}  // namespace tetrion::actor
