#pragma once

#include <optional>
#include <string>

#include "lib/core/log.h"
#include "lib/setup/run_choice.h"

namespace tetrion::coordinator {

// What the coordinator's user may say.
struct CoordinatorOptions : RunChoice {
  std::string bind;  // empty: a socket in the run folder
  bool insecure = false;
  std::string http_bind = "127.0.0.1:0";
  double session_lease_s = 10;
  double heartbeat_s = 1;
  double drain_timeout_s = 20;
  LogConfig log = {.service = "coordinator"};
};

// nullopt: go on with `options`; else the exit code (--help, --version). Throws Error(kUsage).
std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options);

}  // namespace tetrion::coordinator
