#include "tools/stream/stream_end.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/region_v2/compat_layout.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLookEveryNs = 5 * kNanosPerMilli;
// Answers take as long as the environment; more than this is as good as lost.
constexpr std::int64_t kAnswerPeerTimeouts = 2;

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

CompatEndConfig EndConfigOf(const StreamOptions& options, const std::atomic<bool>& stop) {
  CompatEndConfig config;
  config.stream = !options.no_stream;
  config.doorbell_every = options.doorbell_every;
  config.wait.spins = options.spins;
  config.wait.peer_timeout_ns = options.peer_timeout_ms * kNanosPerMilli;
  config.wait.answer_timeout_ns = kAnswerPeerTimeouts * config.wait.peer_timeout_ns;
  config.stop = &stop;
  return config;
}

std::optional<CompatRegion> OpenRegion(const StreamOptions& options, CompatRole role,
                                       const std::atomic<bool>& stop) {
  const Deadline deadline(MonotonicClock::Get(), static_cast<std::int64_t>(options.wait_s * 1e9));
  std::error_code ignored;
  while (role == CompatRole::kHost && !std::filesystem::exists(options.region, ignored) &&
         !deadline.Passed()) {
    if (stop.load(std::memory_order_acquire)) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kLookEveryNs));
  }
  const std::size_t bytes = options.size_mib == 2 ? kCompatLargeRegionBytes : kCompatRegionBytes;
  // A file that is there may still be growing: its maker needs no more than a moment.
  const std::int64_t patience_ns = std::min(deadline.LeftNs(), kNanosPerSecond);
  return CompatRegion::Open(options.region, role, bytes, patience_ns);
}

std::string ReasonOf(const StreamOutcome& outcome, const StreamOptions& options) {
  const std::string other = options.command == "kernel" ? "the host" : "the kernel";
  if (outcome.result == CompatResult::kPeerLost) {
    return other + " has shown no sign of life for " + std::to_string(options.peer_timeout_ms) +
           " ms";
  }
  const bool no_answer = outcome.result == CompatResult::kTimeout && outcome.problem.empty();
  return no_answer ? other + " did not answer" : outcome.problem;
}

void ThrowUnlessGood(const StreamOutcome& outcome, const StreamOptions& options) {
  const std::string where = options.region + ": ";
  const std::string other = options.command == "kernel" ? "host" : "kernel";
  const std::string why = outcome.problem.empty() ? "" : " (" + outcome.problem + ")";
  switch (outcome.result) {
    case CompatResult::kOk:
    case CompatResult::kIdle:
    case CompatResult::kStopped:
      return;
    case CompatResult::kPeerLost:
      throw Error(ExitCode::kTryAgain,
                  where + "peer_lost: " + ReasonOf(outcome, options) + "; start it and try again");
    case CompatResult::kTimeout:
      throw Error(ExitCode::kTryAgain,
                  where + "timeout: the " + other + " did not answer" + why + "; is it running?");
    case CompatResult::kBusy:
      throw Error(ExitCode::kTryAgain,
                  where + "busy: the host had no room for an observation" + why);
    case CompatResult::kCorrupt:
      throw Error(ExitCode::kConfig,
                  where + "corrupt" + why + "; end both programs and remove the file");
    case CompatResult::kRefused:
      if (outcome.error_result != kCompatErrorRestart) break;
      throw Error(ExitCode::kTryAgain, where + "refused: a new " + other + " has taken over" + why +
                                           "; start again, or use --stay to go on by itself");
    case CompatResult::kSeqError:
      break;
  }
  throw Error(ExitCode::kConfig, where + CompatResultName(outcome.result) + ": the " + other +
                                     " and this end disagree about the protocol" + why);
}

void SleepUnlessStopped(std::int64_t time_ns, const std::atomic<bool>& stop) {
  const Deadline deadline(MonotonicClock::Get(), time_ns);
  while (!deadline.Passed() && !stop.load(std::memory_order_acquire)) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::min(kLookEveryNs, deadline.LeftNs())));
  }
}

void AddNumber(JsonObject& line, std::string_view key, double value) {
  char number[32];
  std::snprintf(number, sizeof number, "%.6g", std::isfinite(value) ? value : 0.0);
  line.AddJson(key, number);
}

void AddStats(JsonObject& line, const CompatStats& stats) {
  line.Add("steps", stats.steps).Add("episodes", stats.episodes);
  line.Add("truncated", stats.truncated).Add("resets", stats.resets);
  line.Add("commands", stats.commands).Add("errors", stats.errors);
  line.Add("seq_errors", stats.seq_errors).Add("dropped", stats.dropped);
  line.Add("doorbells", stats.doorbells).Add("wakes", stats.wakes);
  line.Add("waits", stats.waits).Add("sleeps", stats.sleeps);
}

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
