#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/region_v2/compat_region.h"

namespace tetrion {

// How the kernel asks the host: sends a command, waits for its answer, and keeps the answers to
// earlier commands, which may still come, from being taken for it. Inside of CompatKernel, whose
// episodes stand on it; the episode's phase lives here because a call that fails ends it.
//
// Thread role: the kernel's thread. Neither copied nor moved: the waiter refers to the parts.
struct CompatKernelCalls {
  // Lays the region out or adopts it, then attaches.
  CompatKernelCalls(std::span<std::byte> memory, const CompatEndConfig& end_config);

  enum class Phase {
    kIdle,       // only Reset or another command goes on
    kResetting,  // ENV_RESET sent
    kDeciding,   // an observation is at hand
    kStepping,   // an action is on its way
  };

  static constexpr int kEntriesPerPoll = 64;  // bounds a poll whatever the host queues

  // The time of one call, however many waits it has. Begins when the first of them has spun enough:
  // a call whose answers are quick reads no clock.
  class CallTime {
   public:
    CallTime(const Clock& clock, std::int64_t timeout_ns)
        : clock_(clock), timeout_ns_(timeout_ns) {}
    const Deadline& Begun() {
      if (!deadline_) deadline_.emplace(clock_, timeout_ns_);
      return *deadline_;
    }

   private:
    const Clock& clock_;
    const std::int64_t timeout_ns_;
    std::optional<Deadline> deadline_;
  };
  CallTime AnswerTime() const { return {clock, config.wait.answer_timeout_ns}; }

  // Polls until it says anything but kIdle, while `time` lasts. A poll takes a bounded number of
  // entries, so that a host that never stops publishing cannot keep a call from ending.
  template <typename Poll>
  CompatResult Await(Poll&& poll, CallTime& time);
  // Sends a command once the ring has room; kOk or what ended the wait.
  CompatResult Send(std::uint16_t cmd, std::uint32_t payload, CallTime& time);
  // Waits for the response to the command `cmd` sent last.
  CompatResult AwaitResponse(std::uint16_t cmd, CompatResponse& response, CallTime& time);
  // kOk for an OK response; the rest ends the episode.
  CompatResult Answer(const CompatResponse& response);
  // Waits until no answer to an earlier command can come, if one may.
  CompatResult Barrier(CallTime& time);
  // The host announced blob `id` and the heap does not hold it.
  CompatResult NoBlob(std::uint32_t id);
  // Ends the episode with `result`, for the reason `text`.
  CompatResult Fail(CompatResult result, std::string text);
  CompatResult Corrupt(const char* what) {
    return Fail(CompatResult::kCorrupt, std::string(what) + " holds an impossible index");
  }

  const CompatEndConfig config;
  const Clock& clock;
  const bool adopted;
  CompatParts parts;
  CompatStats stats;
  CompatWaiter waiter;

  Phase phase = Phase::kIdle;
  bool streaming = false;
  // Responses to an earlier command, of this or another kernel, may still arrive: a PING's answer
  // comes after them.
  bool barrier_due;
  std::uint32_t pings = 0;
  std::uint32_t error_result = 0;
  std::string problem;

 private:
  CompatResult PollResponse(std::uint16_t cmd, CompatResponse& response);
  CompatResult PollPing(std::uint32_t nonce, bool& answered);
};

template <typename Poll>
CompatResult CompatKernelCalls::Await(Poll&& poll, CallTime& time) {
  CompatResult result = poll();
  while (result == CompatResult::kIdle && waiter.Spin()) result = poll();
  while (result == CompatResult::kIdle) {
    const CompatResult rest = waiter.Rest(time.Begun());
    if (rest != CompatResult::kOk) return rest;
    result = poll();
  }
  waiter.Done();
  return result;
}

}  // namespace tetrion
