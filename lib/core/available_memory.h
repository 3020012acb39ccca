#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tetrion {

// Memory that this process could still get without swapping, and what bounds it.
struct AvailableMemory {
  std::uint64_t bytes = 0;
  std::string group;              // folder of the control group that leaves the least; empty: the
                                  // machine does
  std::uint64_t limit_bytes = 0;  // of that group
};

// The least of what the machine says (MemAvailable of /proc/meminfo) and what each control group on
// the way up leaves: its limit less what it holds, where pages of files count as free, since the
// kernel drops them first. Version 2 says it in memory.max, memory.current and memory.stat, version
// 1 in memory.limit_in_bytes, memory.usage_in_bytes and memory.stat (the kernel's cgroup-v2.rst and
// cgroup-v1/memory.rst). Beyond a group's limit the kernel kills, at the first touch of a page.
// nullopt where nothing bounds it. `root` as for ControlGroupsOf. Reads files; any thread.
std::optional<AvailableMemory> FindAvailableMemory(const std::string& root = "");

}  // namespace tetrion
