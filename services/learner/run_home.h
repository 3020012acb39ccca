#pragma once

#include "lib/run/run_folder.h"
#include "lib/wire/messages.h"
#include "services/learner/options.h"

namespace tetrion::learner {

// The run's folder as the learner's machine has it, where its checkpoints are: --run-folder, else
// the run below --runs-dir, else the path that the coordinator has it at. Throws Error(kConfig)
// when there is no such folder or no checkpoint can be written there. Blocks for the disk.
RunFolder RunHomeOf(const LearnerOptions& options, const wire::Registered& registered);

}  // namespace tetrion::learner
