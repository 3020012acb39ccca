#include "lib/core/cpu_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

namespace tetrion {
namespace {

constexpr int kNoQuota = 0;
constexpr int kMostCpus = 1 << 16;  // where growing the kernel's set of CPUs ends

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

bool Contains(const std::vector<std::string>& words, const char* wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

// The hierarchies of /proc/self/mountinfo that limit CPU time. A line is "36 35 98:0 GROUP FOLDER
// OPTIONS [FIELDS...] - TYPE SOURCE SUPER_OPTIONS".
std::vector<Mount> CpuMounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = Words(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    if (!is_v2 && !(dash[1] == "cgroup" && Contains(Words(dash[3], ','), "cpu"))) continue;
    mounts.push_back({.folder = words[4], .group = words[3], .is_v2 = is_v2});
  }
  return mounts;
}

// The process's group in a hierarchy, of the lines "ID:CONTROLLERS:GROUP" in /proc/self/cgroup; the
// one of version 2 has no controllers. Empty when it is in none.
std::string GroupOf(const std::string& root, bool is_v2) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool found = is_v2 ? controllers.empty() : Contains(Words(controllers, ','), "cpu");
    if (found) return line.substr(second + 1);
  }
  return "";
}

// The quota of one group in CPUs.
int QuotaOf(const std::string& folder, bool is_v2) {
  double quota_us = 0, period_us = 0;  // "max" and -1 leave no quota
  if (is_v2) {
    std::ifstream(folder + "/cpu.max") >> quota_us >> period_us;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota_us;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period_us;
  }
  if (!(quota_us > 0) || !(period_us > 0)) return kNoQuota;
  const double whole = quota_us / period_us;
  if (whole >= kMostCpus) return kNoQuota;
  const int below = static_cast<int>(whole);
  return std::max(1, below + (below < whole ? 1 : 0));
}

int Smaller(int a, int b) {
  return a == kNoQuota || b == kNoQuota ? std::max(a, b) : std::min(a, b);
}

// From the process's group up to the one that is mounted. A container sees its own group mounted,
// under a name that may be the host's.
int QuotaUnder(const std::string& root, const Mount& mount) {
  std::string below = GroupOf(root, mount.is_v2);
  if (mount.group != "/" && below.rfind(mount.group, 0) == 0) below.erase(0, mount.group.size());
  int quota = kNoQuota;
  while (below.size() > 1) {
    quota = Smaller(quota, QuotaOf(root + mount.folder + below, mount.is_v2));
    below.erase(below.rfind('/') == std::string::npos ? 0 : below.rfind('/'));
  }
  return Smaller(quota, QuotaOf(root + mount.folder, mount.is_v2));
}

int AffinityCpus() {
  for (int cpus = CPU_SETSIZE; cpus <= kMostCpus; cpus *= 2) {
    const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(cpus), free_set);
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

int QuotaCpus(const std::string& root) {
  int quota = kNoQuota;
  for (const Mount& mount : CpuMounts(root)) quota = Smaller(quota, QuotaUnder(root, mount));
  return quota;
}

int UsableCpus() {
  return std::max(1, Smaller(AffinityCpus(), QuotaCpus()));
}

}  // namespace tetrion
