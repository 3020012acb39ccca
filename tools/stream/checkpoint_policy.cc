#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/envs/vec_env.h"
#include "lib/policy/network_policy.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"
#include "tools/stream/stream_policy.h"

namespace tetrion {

std::unique_ptr<Policy> LoadCheckpointPolicy(const std::string& runs_dir, const std::string& run) {
  const RunFolder folder = RunFolder::Open(runs_dir, run);
  RunConfig config = folder.ReadConfig();
  Resolve(config);
  if (config.env != "cartpole") {
    throw Error(ExitCode::kConfig, "run " + folder.name() + " plays " + config.env +
                                       ", a streamed region carries cartpole: take another run");
  }
  constexpr int kCheckpointsRead = 1;  // the store is only read: what it would keep is no matter
  const auto checkpoint = CheckpointStore(folder.checkpoints(), kCheckpointsRead).LoadNewest();
  if (!checkpoint) {
    throw Error(ExitCode::kConfig, "run " + folder.name() + " has no checkpoint in " +
                                       folder.checkpoints() + " yet: let it train on");
  }
  if (!checkpoint->warning.empty()) log::warn("{}", checkpoint->warning);
  auto policy = MakeNetworkPolicy({.network = config.network, .greedy = true, .max_lanes = 1},
                                  MakeEnvSpec(EnvConfigOf(config)));
  const auto blob = PolicyBlobOf(checkpoint->state);
  const auto version = static_cast<std::uint32_t>(checkpoint->info.policy_version);
  if (policy->LoadWeights(blob, version) != LoadResult::kLoaded) {
    throw Error(ExitCode::kConfig, checkpoint->path + " does not fit network " + config.network +
                                       " of its run, or is not finite: take another run");
  }
  return policy;
}

}  // namespace tetrion
