#pragma once

#include <cstdint>
#include <string>

#include "lib/http/http_endpoint.h"
#include "lib/metrics/registry.h"
#include "services/coordinator/control_agent.h"

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

// Closes every connection when what they queue fills our memory: what queues in front of the socket
// is bounded by nothing in ZeroMQ (lib/wire/socket.h says why). One thread, main's.
class MemoryWatch {
 public:
  // Both must outlive the watch.
  MemoryWatch(ControlAgent& control, MetricsRegistry& registry)
      : control_(control), rebinds_(registry.Counter("tetrion_coordinator_rebinds_total")) {}
  // Looks at this process's memory; connections are closed once a second at most.
  void Tick();

 private:
  ControlAgent& control_;
  HotCounter& rebinds_;
  std::int64_t next_rebind_ns_ = 0;
};

}  // namespace tetrion::coordinator
