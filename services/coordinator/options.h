#pragma once

#include <optional>
#include <string>

#include "lib/core/log.h"
#include "lib/setup/curve_options.h"
#include "lib/setup/run_choice.h"
#include "services/common/health_check.h"

namespace tetrion::coordinator {

// What the coordinator's user may say.
struct CoordinatorOptions : RunChoice {
  std::string bind;  // empty: a socket in the run folder
  bool insecure = false;
  bool or_resume = false;  // a run of that name is gone on with
  std::string advertise;   // host[:port] of `bind` that members are told; empty: what is bound
  CurveOptions curve;
  std::string http_bind = "127.0.0.1:0";
  std::string http_advertise;  // the same of `http_bind`
  double session_lease_s = 10;
  double heartbeat_s = 1;
  double drain_timeout_s = 20;
  HealthCheck health;
  LogConfig log = {.service = "coordinator"};
};

// nullopt: go on with `options`; else the exit code (--help, --version). Throws Error(kUsage).
std::optional<int> ParseOptions(int argc, const char* const* argv, CoordinatorOptions& options);

}  // namespace tetrion::coordinator
