#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tetrion {

// What is in a region, for people, and what is wrong with it.
struct RegionReport {
  std::string text;
  std::vector<std::string> problems;  // one sentence each; empty: both ends could attach
};

// Looks at a copy of a region: rings, epochs, doorbell words, heap, the last `last_entries` of each
// ring, and every blob. Believes nothing it reads: any content gives a report.
// `memory` holds at least kCompatRegionBytes (CHECK).
RegionReport InspectRegion(std::span<const std::byte> memory, int last_entries);

}  // namespace tetrion
