#include "lib/cuda/sim/fault_report.h"

#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "lib/core/nowait_writer.h"
#include "lib/cuda/sim/block_runner.h"

namespace tetrion::cuda::sim {
namespace {

const Memory* g_memory = nullptr;
struct sigaction g_previous;

// Allocates, which a handler may not in general: the process ends anyhow, and a faulting kernel
// holds no lock of the allocator's.
void Report(int /*signal*/, siginfo_t* info, void* /*context*/) {
  // Whatever comes next, the next fault is the handler's that was there before.
  (void)sigaction(SIGSEGV, &g_previous, nullptr);
  const std::optional<std::string> what = g_memory->Describe(info->si_addr);
  if (!what) return;
  const BlockRunner* runner = BlockRunner::Current();
  const std::string text = "simulated CUDA device: an address that was touched " + *what + " (" +
                           (runner == nullptr ? "by the host or a copy" : runner->Place()) + ")\n";
  (void)NoWaitWriter(STDERR_FILENO).Write(text);
}

}  // namespace

void ReportFaultsIn(const Memory& memory) {
  g_memory = &memory;
  struct sigaction action = {};
  action.sa_sigaction = Report;
  action.sa_flags = SA_SIGINFO;
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGSEGV, &action, &g_previous);
}

}  // namespace tetrion::cuda::sim
