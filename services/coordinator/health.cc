#include "services/coordinator/health.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "services/common/service_host.h"

namespace tetrion::coordinator {
namespace {

// Beyond this, apart from our own tables, connections are closed.
constexpr std::uint64_t kMaxInputBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kRebindEveryNs = kNanosPerSecond;

// Resident memory of this process; 0 where the kernel does not tell.
std::uint64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all_pages = 0, resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Readiness ReadinessOf(const ReadyInput& input) {
  if (!input.store_pause.empty()) {
    return {false, "the store cannot be written: " + input.store_pause};
  }
  if (!input.files_problem.empty()) return {false, input.files_problem};
  if (input.cycle_age_ns > kMaxLinkCycleNs) {
    return {false, "the control thread has been busy for " +
                       std::to_string(input.cycle_age_ns / kNanosPerSecond) + " s"};
  }
  if (input.draining) return {false, "the run is ending"};
  return {true, ""};
}

// Connections that fill our memory are closed, all of them: nothing tells which one it is.
void MemoryWatch::Tick() {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  const std::uint64_t most = kMaxInputBytes + control_.TableBytes();
  if (now_ns < next_rebind_ns_ || ResidentBytes() <= most) return;
  malloc_trim(0);  // what members that left have freed is no input
  const std::uint64_t bytes = ResidentBytes();
  if (bytes <= most) return;
  next_rebind_ns_ = now_ns + kRebindEveryNs;
  log::error("{} MiB of memory are in use: closing every connection; members come back",
             bytes >> 20);
  rebinds_.Increment();
  control_.RequestRebind();
}

}  // namespace tetrion::coordinator
