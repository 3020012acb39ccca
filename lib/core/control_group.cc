#include "lib/core/control_group.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace tetrion {
namespace {

// Where a hierarchy of control groups is mounted, and which of its groups lies there.
struct Mount {
  std::string folder, group;
  bool is_v2 = false;
};

std::vector<std::string> Words(const std::string& text, char between) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, between);) words.push_back(word);
  return words;
}

bool Contains(const std::vector<std::string>& words, const std::string& wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

// The hierarchies of /proc/self/mountinfo that may have the controller. A line is "36 35 98:0 GROUP
// FOLDER OPTIONS [FIELDS...] - TYPE SOURCE SUPER_OPTIONS".
std::vector<Mount> MountsOf(const std::string& controller, const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = Words(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    const bool has = is_v2 || (dash[1] == "cgroup" && Contains(Words(dash[3], ','), controller));
    if (has) mounts.push_back({.folder = words[4], .group = words[3], .is_v2 = is_v2});
  }
  return mounts;
}

// The process's group in a hierarchy, of the lines "ID:CONTROLLERS:GROUP" in /proc/self/cgroup; the
// one of version 2 has no controllers. Empty when it is in none.
std::string GroupOf(const std::string& controller, const std::string& root, bool is_v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool found = is_v2 ? controllers.empty() : Contains(Words(controllers, ','), controller);
    if (found) return line.substr(second + 1);
  }
  return "";
}

}  // namespace

// A container sees its own group mounted, under a name that may be the host's.
std::vector<ControlGroup> ControlGroupsOf(const std::string& controller, const std::string& root) {
  std::vector<ControlGroup> groups;
  for (const Mount& mount : MountsOf(controller, root)) {
    std::string below = GroupOf(controller, root, mount.is_v2);
    if (mount.group != "/" && below.rfind(mount.group, 0) == 0) below.erase(0, mount.group.size());
    while (below.size() > 1) {
      groups.push_back({.folder = root + mount.folder + below, .is_v2 = mount.is_v2});
      below.erase(below.rfind('/') == std::string::npos ? 0 : below.rfind('/'));
    }
    groups.push_back({.folder = root + mount.folder, .is_v2 = mount.is_v2});
  }
  return groups;
}

}  // namespace tetrion
