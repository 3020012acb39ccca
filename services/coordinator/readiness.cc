#include "services/coordinator/readiness.h"

#include "services/coordinator/control_agent.h"

namespace tetrion::coordinator {

Readiness ReadinessOf(const ReadyInput& input) {
  if (!input.store_pause.empty()) {
    return {false, "the store cannot be written: " + input.store_pause};
  }
  if (!input.files_problem.empty()) return {false, input.files_problem};
  if (input.cycle_age_ns > ControlAgent::kMaxCycleNs) {
    return {false, "the control thread has been busy for " +
                       std::to_string(input.cycle_age_ns / kNanosPerSecond) + " s"};
  }
  if (input.draining) return {false, "the run is ending"};
  return {true, ""};
}

}  // namespace tetrion::coordinator
