#include "lib/region_v2/compat_kernel_calls.h"

#include <utility>

namespace tetrion {

CompatKernelCalls::CompatKernelCalls(std::span<std::byte> memory, const CompatEndConfig& end_config)
    : config(end_config),
      clock(ClockOf(config)),
      adopted(LayOutOrAdoptCompat(memory, config.stream)),
      parts(memory, clock),
      waiter(config, parts.obs_bell, parts.action_bell, parts.kernel_signs, parts.host_signs,
             stats),
      barrier_due(adopted) {}

CompatResult CompatKernelCalls::Fail(CompatResult result, std::string text) {
  phase = Phase::kIdle;
  streaming = false;
  problem = std::move(text);
  return result;
}

CompatResult CompatKernelCalls::Send(std::uint16_t cmd, std::uint32_t payload, CallTime& time) {
  const CompatCommand command = {
      .cmd = cmd,
      .flags = 0,
      .payload = payload,
      .timestamp_us = static_cast<std::uint64_t>(clock.NowNs() / 1000),
  };
  const CompatResult sent = Await(
      [&] {
        switch (parts.command.Push(command)) {
          case CompatRingResult::kFull:
            return CompatResult::kIdle;
          case CompatRingResult::kCorrupt:
            return Corrupt("the command ring");
          default:
            return CompatResult::kOk;
        }
      },
      time);
  if (sent != CompatResult::kOk) return sent;
  ++stats.commands;
  CompatDoorbellBlock& bell = *parts.doorbell;
  const auto writes = CompatWord(bell.cmd_writes);
  CompatWord(bell.cmd_doorbell).store(parts.command.head(), std::memory_order_relaxed);
  writes.store(writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  parts.action_bell.WakeSleeper(stats);
  return CompatResult::kOk;
}

// Skips what answers something else. A new host says so with an ERROR; when our command has left
// the ring by then, the old one took it along.
CompatResult CompatKernelCalls::PollResponse(std::uint16_t cmd, CompatResponse& response) {
  for (int i = 0; i < kEntriesPerPoll; ++i) {
    const CompatRingResult popped = parts.response.Pop(response);
    if (popped == CompatRingResult::kEmpty) return CompatResult::kIdle;
    if (popped == CompatRingResult::kCorrupt) return Corrupt("the response ring");
    if (response.orig_cmd == cmd) return CompatResult::kOk;
    ++stats.dropped;
    const bool restarted = response.orig_cmd == kCompatEnvStep && response.status == kCompatError &&
                           response.result == kCompatErrorRestart;
    if (restarted && parts.command.Drained()) {
      barrier_due = true;
      return Answer(response);
    }
  }
  return CompatResult::kIdle;
}

CompatResult CompatKernelCalls::AwaitResponse(std::uint16_t cmd, CompatResponse& response,
                                              CallTime& time) {
  const CompatResult result = Await([&] { return PollResponse(cmd, response); }, time);
  if (result != CompatResult::kOk) {
    barrier_due = true;  // the answer may still come
    if (result != CompatResult::kCorrupt) phase = Phase::kIdle;
  }
  return result;
}

CompatResult CompatKernelCalls::Answer(const CompatResponse& response) {
  if (response.status == kCompatOk) return CompatResult::kOk;
  if (response.status == kCompatBusy) {
    return Fail(CompatResult::kBusy, "the host is busy");
  }
  // A status that the format does not know is a refusal too, of which the result says nothing.
  const bool known = response.status == kCompatError;
  ++stats.errors;
  error_result = known ? response.result : 0;
  return Fail(CompatResult::kRefused,
              "the host answered " +
                  (known ? "ERROR" : "with status " + std::to_string(response.status)) +
                  ", result " + std::to_string(response.result) + ", to command " +
                  std::to_string(response.orig_cmd));
}

// One answer to a PING at a time. A host need not echo the payload, so the result tells only where
// it happens to be our number; all answers look alike to the rest. What counts then is the order: a
// host answers each command before it takes the next. Hence once our PING has been taken and some
// PING answered, and nothing is left in the response ring, no answer to an earlier command is to
// come; at most the one to our PING is, and a wait for something else passes over that.
CompatResult CompatKernelCalls::PollPing(std::uint32_t nonce, bool& answered) {
  CompatResponse response = {};
  const CompatResult result = PollResponse(kCompatPing, response);
  if (result == CompatResult::kOk) {
    if (response.status == kCompatOk && response.result == nonce) return CompatResult::kOk;
    answered = true;
  } else if (result != CompatResult::kIdle) {
    return result;
  }
  // In this order: with the last command gone, what was said before it is in the response ring.
  const bool all = answered && parts.command.Drained() && parts.response.Empty();
  return all ? CompatResult::kOk : CompatResult::kIdle;
}

CompatResult CompatKernelCalls::Barrier(CallTime& time) {
  if (!barrier_due) return CompatResult::kOk;
  const std::uint32_t epoch =
      CompatWord(parts.command.header().epoch).load(std::memory_order_relaxed);
  const std::uint32_t nonce = (++pings << 16) | (epoch & 0xFFFFU);
  if (const CompatResult sent = Send(kCompatPing, nonce, time); sent != CompatResult::kOk)
    return sent;
  bool answered = false;
  const CompatResult result = Await([&] { return PollPing(nonce, answered); }, time);
  if (result == CompatResult::kOk) {
    barrier_due = false;
  } else if (result != CompatResult::kCorrupt) {
    phase = Phase::kIdle;
  }
  return result;
}

// A host that starts forgets the blobs of the one before it, also those just announced.
CompatResult CompatKernelCalls::NoBlob(std::uint32_t id) {
  barrier_due = true;
  error_result = kCompatErrorRestart;
  return Fail(CompatResult::kRefused, "the heap has no blob " + std::to_string(id) +
                                          " as announced: has a new host started?");
}

}  // namespace tetrion
