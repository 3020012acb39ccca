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
  // Holds the folder, by flock, until it is closed: two coordinators on one store would both count.
  // Whether the run is new was decided, and its files are written and removed, under it.
  FileDescriptor lock;
  RunConfig config;
  bool is_new = false;
};
// Throws Error: kUsage (the run exists; no such run; another process holds it), kTryAgain (the
// folder cannot be written; a new one is removed again), kUsage (a setting that a resumed run
// keeps: both values).
OpenedRun OpenRun(const CoordinatorOptions& options);

}  // namespace tetrion::coordinator
