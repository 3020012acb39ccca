#pragma once

#include <string>
#include <vector>

#include "lib/run/options.h"
#include "lib/run/run_config.h"
#include "lib/run/run_folder.h"

namespace tetrion {

// Which run the user wants begun or gone on with, as a program that makes runs is told.
struct RunChoice {
  std::string run;        // name of a new run; empty: environment and time
  std::string resume;     // name of a run to go on with, or "latest"
  std::string init_from;  // of a new run: RUN, RUN/newest or RUN/best
  std::string stop_after;
  std::string runs_dir = DefaultRunsDir();
  std::string shm_dir;         // empty: /dev/shm/tetrion-<uid>
  std::vector<Setting> given;  // run settings of command line and config file
};

// Declares them all, the run's settings included.
void AddRunChoice(ServiceOptions& parser, RunChoice& choice);
// After parsing. Throws Error(kUsage) for options that exclude each other and for a --stop-after
// that is none.
void CheckRunChoice(const RunChoice& choice);

}  // namespace tetrion
