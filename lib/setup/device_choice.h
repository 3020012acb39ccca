#pragma once

#include <string>

#include "lib/run/options.h"

namespace tetrion {

// Where a learner's replay is and who writes it; declared once for the learner and for `up`.
struct DeviceChoice {
  std::string device = "cpu";    // cpu, cuda, sim
  int resident_lanes = 0;        // lanes that the learner plays itself; 0: none
  std::string trainer = "auto";  // auto, cpu, device: where updates are computed
};

void AddDeviceChoice(ServiceOptions& parser, DeviceChoice& choice);
// After parsing. Throws Error(kUsage) for a device that this build does not have, and for resident
// lanes or updates on one without it.
void CheckDeviceChoice(const DeviceChoice& choice);

}  // namespace tetrion
