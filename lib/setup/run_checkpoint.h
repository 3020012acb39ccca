#pragma once

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/run/run_folder.h"

namespace tetrion {

// The checkpoint of a run that something else plays with or begins with: the newest one, or the one
// with the best mean return. The folder is only read. Logs a warning about newer files that were
// passed over. Throws Error(kConfig) when the run has none yet or none is usable.
Checkpoint CheckpointOf(const RunFolder& folder, bool best);

}  // namespace tetrion
