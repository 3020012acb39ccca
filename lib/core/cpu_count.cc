#include "lib/core/cpu_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "lib/core/control_group.h"

namespace tetrion {
namespace {

constexpr int kNoQuota = 0;
constexpr int kMostCpus = 1 << 16;  // where growing the kernel's set of CPUs ends

// The quota of one group in CPUs.
int QuotaOf(const ControlGroup& group) {
  double quota_us = 0, period_us = 0;  // "max" and -1 leave no quota
  if (group.is_v2) {
    std::ifstream(group.folder + "/cpu.max") >> quota_us >> period_us;
  } else {
    std::ifstream(group.folder + "/cpu.cfs_quota_us") >> quota_us;
    std::ifstream(group.folder + "/cpu.cfs_period_us") >> period_us;
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
  for (const ControlGroup& group : ControlGroupsOf("cpu", root)) {
    quota = Smaller(quota, QuotaOf(group));
  }
  return quota;
}

int UsableCpus() {
  return std::max(1, Smaller(AffinityCpus(), QuotaCpus()));
}

}  // namespace tetrion
