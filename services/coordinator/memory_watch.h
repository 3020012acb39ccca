#pragma once

#include <cstdint>

#include "lib/metrics/registry.h"
#include "services/coordinator/control_agent.h"

namespace tetrion::coordinator {

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
