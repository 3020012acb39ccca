#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lib/stream/compat_kernel.h"
#include "lib/stream/compat_parts.h"

namespace tetrion {

// Inside of CompatKernel, for its two source files only.
struct CompatKernel::Impl {
  Impl(std::span<std::byte> memory, const CompatEndConfig& end_config);

  enum class Phase {
    kIdle,       // only Reset or another command goes on
    kResetting,  // ENV_RESET sent
    kDeciding,   // an observation is at hand
    kStepping,   // an action is on its way
  };

  // Polls until it says anything but kIdle, for answer_timeout_ns after spinning.
  template <typename Poll>
  CompatResult Await(Poll&& poll, std::int64_t timeout_ns);
  CompatResult Send(std::uint16_t cmd, std::uint32_t payload);
  CompatResult AwaitResponse(std::uint16_t cmd, CompatResponse& response, std::int64_t timeout_ns);
  CompatResult PollResponse(std::uint16_t cmd, CompatResponse& response);
  CompatResult Answer(const CompatResponse& response);
  CompatResult Barrier(std::int64_t timeout_ns);
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
  // Responses to somebody's or an earlier command may still arrive: a PING's answer comes after
  // them.
  bool barrier_due;
  std::uint32_t pings = 0;
  std::uint32_t seq = 0;   // of the last observation
  std::uint32_t blob = 0;  // that carried it; 0 when streaming
  std::uint32_t error_result = 0;
  std::string problem;
};

template <typename Poll>
CompatResult CompatKernel::Impl::Await(Poll&& poll, std::int64_t timeout_ns) {
  CompatResult result = poll();
  while (result == CompatResult::kIdle && waiter.Spin()) result = poll();
  if (result == CompatResult::kIdle) {
    const Deadline deadline(clock, timeout_ns);
    while (result == CompatResult::kIdle) {
      const CompatResult rest = waiter.Rest(deadline);
      if (rest != CompatResult::kOk) return rest;
      result = poll();
    }
  }
  waiter.Done();
  return result;
}

}  // namespace tetrion
