#pragma once

#include <vector>

#include "lib/core/file.h"
#include "lib/run/run_config.h"
#include "lib/run/run_folder.h"
#include "services/coordinator/options.h"

namespace tetrion::coordinator {

// A run as the options ask for it: new, or resumed with its own configuration and the settings of
// learning that are given otherwise. A new run may begin in the folder that a beginning left which
// died before it had written its configuration.
struct OpenedRun {
  RunFolder folder;
  // Holds the folder, by flock, until it is closed: two coordinators on one store would both count.
  // Whether the run is new was decided, and its files are written and removed, under it.
  FileDescriptor lock;
  RunConfig config;
  std::vector<SettingChange> changes;  // of a resumed run, already in `config`
  bool is_new = false;
  bool has_trained = false;  // there are checkpoints, and so there must be an account
};
// Throws Error: kUsage (the run exists; no such run; another process holds it), kTryAgain (the
// folder cannot be written; a new one is removed again), kUsage (a setting that a resumed run
// keeps: both values).
OpenedRun OpenRun(const CoordinatorOptions& options);

// Once the coordinator stands, before it takes members: a resumed run becomes the latest, and what
// was given otherwise its configuration, recorded (RunFolder::RecordChanges) and logged. A start
// that fails before leaves the run as it was. Throws Error(kTryAgain).
void NoteResumed(const OpenedRun& run);

}  // namespace tetrion::coordinator
