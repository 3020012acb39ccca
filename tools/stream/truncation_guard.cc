#include "tools/stream/truncation_guard.h"

#include <signal.h>
#include <unistd.h>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {
namespace {

// What the handler needs, made before it can run: a handler allocates nothing.
struct Guarded {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  std::string sentence;
  struct sigaction before = {};
};
Guarded guarded;

void OnBusError(int, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  if (info->si_code != BUS_ADRERR || at < guarded.begin || at >= guarded.end) {
    sigaction(SIGBUS, &guarded.before, nullptr);  // the access is made again
    return;
  }
  // Nothing is left to do about a write that fails.
  static_cast<void>(!write(STDERR_FILENO, guarded.sentence.data(), guarded.sentence.size()));
  _exit(static_cast<int>(ExitCode::kConfig));
}

}  // namespace

TruncationGuard::TruncationGuard(std::span<const std::byte> region, const std::string& path) {
  TETRION_CHECK(guarded.begin == nullptr, "one region is guarded at a time");
  guarded.sentence = "tetrion-stream: " + path +
                     ": the region was cut off while it was in use, or its file system is full; "
                     "end both programs and remove the file\n";
  guarded.end = region.data() + region.size();
  guarded.begin = region.data();
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &guarded.before);
}

TruncationGuard::~TruncationGuard() {
  sigaction(SIGBUS, &guarded.before, nullptr);
  guarded.begin = guarded.end = nullptr;
}

}  // namespace tetrion
