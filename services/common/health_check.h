#pragma once

#include <string>

#include "lib/run/options.h"

namespace tetrion {

// `tetrion-actor healthcheck [--live]`: a service's program asks the service that runs beside it,
// in the same container and with the same options, whether it is well. For container engines, which
// need no other program in the image then. One thread.
struct HealthCheck {
  std::string command;  // "healthcheck"; empty: run the service
  bool live = false;

  bool Wanted() const { return !command.empty(); }
};

// Declares them.
void AddHealthCheck(ServiceOptions& parser, HealthCheck& check);
// After parsing. Throws Error(kUsage) for another command and for --live without one.
void CheckHealthCheck(const HealthCheck& check);

// Asks /readyz, or /livez, at the port of `http_bind`. 0: ready. 1: not, with the reason on stderr.
// Blocks for 2 s at most.
int AskHealth(const HealthCheck& check, const std::string& http_bind);

}  // namespace tetrion
