#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/run/run_config.h"

namespace tetrion::coordinator {

// What the coordinator's user may say.
struct CoordinatorOptions {
  std::string run;  // empty: environment and time
  std::string runs_dir = "runs";
  std::string resume;
  std::string init_from;  // of a new run: RUN, RUN/newest or RUN/best
  std::string bind;       // empty: a socket in the run folder
  bool insecure = false;
  std::string http_bind = "127.0.0.1:0";
  double session_lease_s = 10;
  double heartbeat_s = 1;
  std::string stop_after;
  double drain_timeout_s = 20;
  std::string shm_dir;  // empty: /dev/shm/tetrion-<uid>
  LogConfig log = {.service = "coordinator"};
  std::vector<Setting> given;  // the run's settings, as far as the user gave them
};

// nullopt: go on with `options`; else the exit code (--help, --version). Throws Error(kUsage).
std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options);

}  // namespace tetrion::coordinator
