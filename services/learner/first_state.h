#pragma once

#include <cstdint>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/rl/trainer.h"
#include "lib/run/run_config.h"
#include "lib/run/run_folder.h"
#include "services/learner/options.h"

namespace tetrion::learner {

// What a trainer begins with: of the checkpoint that it goes on from, 0 in a new run.
struct FirstState {
  std::uint64_t updates = 0;
  std::int64_t env_steps = 0;
  bool older = false;  // a newer checkpoint could not be used
};

// Refuses what LoadFirstState would of settings and folder, for a learner that has taken nothing
// yet. Changes nothing. Throws as LoadFirstState.
void CheckFirstState(const LearnerOptions& options, const RunConfig& run, const RunFolder& folder);

// Loads what a trainer begins with. When resuming: the newest checkpoint of `store`, or a warning
// and the beginning where there is none. Otherwise: the weights of another run where the user wants
// that (--init-from). `version_first` is the first policy version that the coordinator gives. It is
// above the checkpoint's; where not, the account is older than the checkpoint, which is warned of.
// An account that is older by less than a block of versions is not noticed. Throws Error(kConfig)
// for a new run whose folder holds checkpoints, and what CheckpointStore::LoadNewest throws.
FirstState LoadFirstState(const LearnerOptions& options, const CheckpointStore& store,
                          const RunConfig& run, const RunFolder& folder,
                          std::uint32_t version_first, Trainer& trainer);

}  // namespace tetrion::learner
