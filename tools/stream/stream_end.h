#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/json.h"
#include "lib/region_v2/compat_end.h"
#include "lib/region_v2/compat_region.h"
#include "tools/stream/stream_options.h"

namespace tetrion {

// What both commands, kernel and host, need around their end of the region.

CompatEndConfig EndConfigOf(const StreamOptions& options, const std::atomic<bool>& stop);

// Opens the region in a role; looks at `stop` while the file is not there yet. nullopt when
// stopped. Throws Error as CompatRegion::Open does.
std::optional<CompatRegion> OpenRegion(const StreamOptions& options, CompatRole role,
                                       const std::atomic<bool>& stop);

// Runs `attach`, which makes an end over the region, and puts the region's name in front of what it
// throws. nullopt when it threw because of `stop`.
template <typename Attach>
auto AttachNamed(const StreamOptions& options, const std::atomic<bool>& stop, Attach&& attach)
    -> std::optional<decltype(attach())> {
  try {
    return attach();
  } catch (const Error& error) {
    if (stop.load(std::memory_order_acquire)) return std::nullopt;
    throw Error(error.code(), options.region + ": " + error.what());
  }
}

// How an end's work ended, with a sentence for people unless it is kOk or kStopped.
struct StreamOutcome {
  CompatResult result = CompatResult::kOk;
  std::string problem;
  std::uint32_t error_result = 0;  // with kRefused: CompatErrorCode
};

// Why it ended: `problem`, or what the silence of the other end was.
std::string ReasonOf(const StreamOutcome& outcome, const StreamOptions& options);

// Throws the Error that an outcome deserves: kTryAgain when the other end is gone or silent,
// kConfig when it broke the protocol or the region is damaged. Nothing for kOk and kStopped.
void ThrowUnlessGood(const StreamOutcome& outcome, const StreamOptions& options);

// How long an end that goes on after a failure waits before it tries again: 1 ms, doubled up to a
// second while nothing is achieved.
class RetryPause {
 public:
  std::int64_t NextNs() {
    const std::int64_t now_ns = next_ns_;
    next_ns_ = std::min(2 * next_ns_, kNanosPerSecond);
    return now_ns;
  }
  // Something was achieved.
  void Reset() { next_ns_ = kNanosPerMilli; }

 private:
  std::int64_t next_ns_ = kNanosPerMilli;
};

// Sleeps, at most a few milliseconds longer than `stop` stays false.
void SleepUnlessStopped(std::int64_t time_ns, const std::atomic<bool>& stop);

// Parts of the line of JSON that an end prints when it is over. A number to six digits, 0 for one
// that is not finite.
void AddNumber(JsonObject& line, std::string_view key, double value);
// The end's counters: steps, episodes, resets, ... sleeps.
void AddStats(JsonObject& line, const CompatStats& stats);

// While one exists, a program that touches bytes of a mapped region whose file has been cut off, or
// for which the file system has no room, ends with one sentence on stderr and ExitCode::kConfig
// instead of by SIGBUS. Every other SIGBUS ends the program as ever.
//
// Changes what SIGBUS does, for all threads. One at a time (CHECK).
class TruncationGuard {
 public:
  // `path` names the region in the sentence.
  TruncationGuard(std::span<const std::byte> region, const std::string& path);
  TruncationGuard(const TruncationGuard&) = delete;
  TruncationGuard& operator=(const TruncationGuard&) = delete;
  ~TruncationGuard();
};

}  // namespace tetrion
