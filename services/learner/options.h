#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/run/run_config.h"

namespace tetrion {

// The learner's own options; `given` are run settings its user insists on, which the coordinator
// checks against the run's.
struct LearnerOptions {
  std::string run_folder;
  std::string coordinator;
  std::string name = "learner";
  std::string shm_dir;
  std::string http_bind = "127.0.0.1:0";
  bool resume = false;
  bool force = false;
  int threads = 1;
  double checkpoint_every_s = 30;
  int keep_checkpoints = 3;
  int drain_timeout_s = 20;
  int give_up_s = 120;
  LogConfig log;
  std::vector<Setting> given;
};

// nullopt: go on with `options`. 0: --help or --version was answered. Throws Error(kUsage).
std::optional<int> ParseLearnerOptions(int argc, const char* const* argv, LearnerOptions& options);
// The section of docs/options.md.
std::string LearnerOptionsMarkdown();

}  // namespace tetrion
