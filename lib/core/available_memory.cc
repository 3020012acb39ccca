#include "lib/core/available_memory.h"

#include <algorithm>
#include <fstream>

#include "lib/core/control_group.h"

namespace tetrion {
namespace {

// Version 1 has no word for "no limit": it says the largest number of pages.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

// The number that a file holds alone; nullopt for any other text ("max"), or without the file.
std::optional<std::uint64_t> NumberOf(const std::string& path) {
  std::uint64_t number = 0;
  std::ifstream file(path);
  if (!(file >> number)) return std::nullopt;
  return number;
}

// The sum of the named lines "KEY NUMBER" of a file.
std::uint64_t SumOf(const std::string& path, const std::string& first, const std::string& second) {
  std::ifstream file(path);
  std::string key;
  std::uint64_t number = 0, sum = 0;
  while (file >> key >> number) {
    if (key == first || key == second) sum += number;
  }
  return sum;
}

std::optional<std::uint64_t> MachineBytes(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string key, unit;
  std::uint64_t kib = 0;
  while (file >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

std::optional<AvailableMemory> LeftBy(const ControlGroup& group) {
  const std::string memory = group.folder + "/memory.";
  const auto limit = NumberOf(memory + (group.is_v2 ? "max" : "limit_in_bytes"));
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  const std::uint64_t used =
      NumberOf(memory + (group.is_v2 ? "current" : "usage_in_bytes")).value_or(0);
  const std::string total = group.is_v2 ? "" : "total_";  // with the groups below
  const std::uint64_t files =
      SumOf(memory + "stat", total + "inactive_file", total + "active_file");
  const std::uint64_t held = used - std::min(used, files);
  return AvailableMemory{
      .bytes = *limit - std::min(*limit, held), .group = group.folder, .limit_bytes = *limit};
}

}  // namespace

std::optional<AvailableMemory> FindAvailableMemory(const std::string& root) {
  std::optional<AvailableMemory> least;
  if (const auto machine = MachineBytes(root)) {
    least = AvailableMemory{.bytes = *machine, .group = "", .limit_bytes = 0};
  }
  for (const ControlGroup& group : ControlGroupsOf("memory", root)) {
    const std::optional<AvailableMemory> left = LeftBy(group);
    if (left && (!least || left->bytes < least->bytes)) least = left;
  }
  return least;
}

}  // namespace tetrion
