#pragma once

#include <cstdint>
#include <string>

#include "lib/http/http_endpoint.h"

namespace tetrion::coordinator {

// Whether the coordinator may be sent members, and if not, why. The first reason that holds is
// told.
struct ReadyInput {
  std::string store_pause;        // why the store cannot be written; empty: it can
  std::string files_problem;      // what of the run folder cannot be written; empty: nothing
  std::int64_t cycle_age_ns = 0;  // since the control agent finished a cycle
  bool draining = false;
};
Readiness ReadinessOf(const ReadyInput& input);

}  // namespace tetrion::coordinator
