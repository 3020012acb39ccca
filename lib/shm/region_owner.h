#pragma once

#include <cstdint>
#include <string>

namespace tetrion {

// Who owns a region, for people: with the pid, these tell a process from a later one of the same
// number. Both read /proc once; 0 and "" where it cannot be read.

// Start time of this process in clock ticks since boot.
std::uint64_t OwnStartTicks();
// Random name of the running kernel's boot, 36 characters.
std::string BootId();

}  // namespace tetrion
