#include "lib/cuda/sim/fault_report.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/check.h"
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
  if (info->si_code <= 0) {  // sent, by kill for one: returning would not bring it back
    (void)raise(SIGSEGV);
    return;
  }
  const BlockRunner* runner = BlockRunner::Current();
  std::optional<std::string> what = g_memory->Describe(info->si_addr);
  if (!what && runner != nullptr && runner->StackEndsAt(info->si_addr)) {
    what = "lies past the end of a simulated thread's stack";
  }
  if (!what) return;
  const std::string text = "simulated CUDA device: an address that was touched " + *what + " (" +
                           (runner == nullptr ? "by the host or a copy" : runner->Place()) + ")\n";
  (void)NoWaitWriter(STDERR_FILENO).Write(text);
}

// A stack for the handlers of the thread that owns it, unless it has one: AddressSanitizer's
// threads do.
class FaultStack {
 public:
  FaultStack() {
    stack_t stack = {};
    if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
    memory_.reset(new std::byte[kBytes]);
    stack.ss_sp = memory_.get();
    stack.ss_size = kBytes;
    stack.ss_flags = 0;
    (void)sigaltstack(&stack, nullptr);
  }
  ~FaultStack() {
    if (!memory_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    (void)sigaltstack(&none, nullptr);
  }
  FaultStack(const FaultStack&) = delete;
  FaultStack& operator=(const FaultStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 1 << 16;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

void ReserveFaultStack() {
  // No thread_local: its guard would be zero (tests/tidy/rules.py).
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    const auto release = [](void* stack) { delete static_cast<FaultStack*>(stack); };
    TETRION_CHECK(pthread_key_create(&made, release) == 0, "a thread's stack for faults has a key");
    return made;
  }();
  if (pthread_getspecific(key) == nullptr) (void)pthread_setspecific(key, new FaultStack);
}

void ReportFaultsIn(const Memory& memory) {
  g_memory = &memory;
  struct sigaction action = {};
  action.sa_sigaction = Report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  (void)sigemptyset(&action.sa_mask);
  (void)sigaction(SIGSEGV, &action, &g_previous);
}

}  // namespace tetrion::cuda::sim
