#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/region_v2/compat_kernel.h"
#include "lib/region_v2/compat_parts.h"

namespace tetrion {

// Inside of CompatKernel, for its source files only.
struct CompatKernel::Impl {
  Impl(std::span<std::byte> memory, const CompatEndConfig& end_config);

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
  CompatResult BeginReset(CallTime& time);
  CompatResult FinishReset(CompatObs& first, CallTime& time);
  CompatResult SendAction(std::uint16_t action, CallTime& time);
  CompatResult ReceiveObs(CompatObs& next, CallTime& time);
  CompatResult Send(std::uint16_t cmd, std::uint32_t payload, CallTime& time);
  CompatResult AwaitResponse(std::uint16_t cmd, CompatResponse& response, CallTime& time);
  CompatResult PollResponse(std::uint16_t cmd, CompatResponse& response);
  CompatResult PollPing(std::uint32_t nonce, bool& answered);
  CompatResult Answer(const CompatResponse& response);
  CompatResult Barrier(CallTime& time);
  CompatResult NoBlob(std::uint32_t id);
  CompatResult TakeObsBlob(std::uint32_t id, CompatObs& obs);
  CompatResult PollFirstObs(CompatObs& first);
  CompatResult PollNextObs(CompatObs& next);
  CompatResult Have(const CompatObs& obs);
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
  bool done = false;
  // Responses to an earlier command, of this or another kernel, may still arrive: a PING's answer
  // comes after them.
  bool barrier_due;
  std::uint32_t pings = 0;
  std::uint32_t seq = 0;   // of the last observation
  std::uint32_t blob = 0;  // that carried it; 0 when streaming
  std::uint32_t error_result = 0;
  std::string problem;
};

template <typename Poll>
CompatResult CompatKernel::Impl::Await(Poll&& poll, CallTime& time) {
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
