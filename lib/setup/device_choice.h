#pragma once

#include <string>

#include "lib/run/options.h"
#include "lib/run/run_config.h"

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

// Groups of the run's lanes that the resident lanes are: workers of the account, each with its
// replay slot. 0 without resident lanes. Throws Error(kUsage) for lanes that are no whole groups.
int ResidentGroups(int resident_lanes, const RunConfig& run);
// "--resident-lanes 64 are 8 groups of the run's 8 lanes".
std::string ResidentGroupsText(int resident_lanes, const RunConfig& run);

}  // namespace tetrion
