#include "services/learner/first_state.h"

#include <optional>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/setup/init_from.h"

namespace tetrion::learner {
namespace {

// Gives a trainer that has trained nothing yet the parameters of another run, where the user wants
// that (--init-from).
void Begin(const RunFolder& folder, Trainer& trainer) {
  const std::optional<Checkpoint> initial = CheckpointStore(folder.initial(), 1).LoadNewest();
  if (!initial) return;
  trainer.Load(BegunWith(trainer.Save(), initial->state));
  log::info("began with the weights of run {} at its update {}", initial->info.run,
            initial->info.updates);
}

// Of a new run, whose folder may hold none.
void RefuseCheckpoints(const CheckpointStore& store, const RunFolder& folder) {
  if (store.Manifest().empty()) return;
  throw Error(ExitCode::kConfig, folder.checkpoints() +
                                     " holds checkpoints already; add --resume to go on from "
                                     "the newest, or start a new run");
}

}  // namespace

void CheckFirstState(const LearnerOptions& options, const RunConfig& run, const RunFolder& folder) {
  const CheckpointStore store(folder.checkpoints(), options.keep_checkpoints);
  if (!options.resume) return RefuseCheckpoints(store, folder);
  const std::vector<ManifestEntry> listed = store.Manifest();
  const std::uint64_t hash = RunConfigHash(run);
  if (options.force || listed.empty() || listed.back().info.config_hash == hash) return;
  (void)store.LoadNewest(hash);  // which says it, unless that file is the one that cannot be used
}

FirstState LoadFirstState(const LearnerOptions& options, const CheckpointStore& store,
                          const RunConfig& run, const RunFolder& folder,
                          std::uint32_t version_first, Trainer& trainer) {
  if (!options.resume) {
    RefuseCheckpoints(store, folder);
    Begin(folder, trainer);
    return {};
  }
  const std::optional<Checkpoint> checkpoint = store.LoadNewest(RunConfigHash(run), options.force);
  if (!checkpoint) {
    log::warn("no checkpoint in {}, as in a new run: training starts from the beginning",
              folder.checkpoints());
    Begin(folder, trainer);
    return {};
  }
  if (!checkpoint->warning.empty()) log::warn("{}", checkpoint->warning);
  if (checkpoint->info.policy_version >= std::int64_t{version_first}) {
    log::warn(
        "{} is newer than the run's account: it has policy version {}, and the coordinator gives "
        "versions from {}; what was played after tetrion.db was copied is not counted",
        checkpoint->path, checkpoint->info.policy_version, version_first);
  }
  trainer.Load(checkpoint->state);
  log::info("resumed from {} at update {}", checkpoint->path, checkpoint->info.updates);
  return {.updates = static_cast<std::uint64_t>(checkpoint->info.updates),
          .env_steps = checkpoint->info.env_steps,
          .older = !checkpoint->warning.empty()};
}

}  // namespace tetrion::learner
