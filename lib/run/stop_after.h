#pragma once

#include <cstdint>
#include <string>

namespace tetrion {

// When the run ends by itself. Both zero: never.
struct StopAfter {
  double seconds = 0;       // of this start
  std::uint64_t steps = 0;  // environment steps of the whole run
};
// "30s", "2m", "1h", "50000000steps"; "" is never. Throws Error(kUsage) with the forms allowed.
StopAfter ParseStopAfter(const std::string& text);

}  // namespace tetrion
