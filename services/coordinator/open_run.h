#pragma once

#include "lib/core/file.h"
#include "lib/run/run_config.h"
#include "lib/run/run_folder.h"
#include "services/coordinator/options.h"

namespace tetrion::coordinator {

// A run as the options ask for it: new, or resumed with its own configuration and the settings of
// learning that are given otherwise; those are recorded (RunFolder::RecordChanges) and logged.
struct OpenedRun {
  RunFolder folder;
  RunConfig config;
  bool is_new = false;
};
// Throws Error: kUsage (the run exists; no such run), kTryAgain (the folder cannot be written; a
// new one is removed again), kUsage (a setting that a resumed run keeps: both values).
OpenedRun OpenRun(const CoordinatorOptions& options);

// Holds the folder of a run, by flock, until the descriptor is closed: two coordinators on one
// store would both count. Throws Error(kUsage) when another process holds it.
FileDescriptor LockFolder(const RunFolder& folder);

}  // namespace tetrion::coordinator
