#include "lib/shm/region_owner.h"

#include <fstream>
#include <sstream>

namespace tetrion {

std::uint64_t OwnStartTicks() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // Field 2, the command in parentheses, may hold anything: count from its end. Start time is
  // field 22.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream rest(line.substr(end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) rest >> field;
  return rest ? std::stoull(field) : 0;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace tetrion
