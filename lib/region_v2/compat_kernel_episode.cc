#include "lib/core/check.h"
#include "lib/region_v2/compat_kernel_impl.h"

// An episode as the kernel plays it: reset, actions, observations.

namespace tetrion {

CompatResult CompatKernel::Impl::BeginReset(CallTime& time) {
  phase = Phase::kIdle;
  streaming = false;
  if (const CompatResult clear = Barrier(time); clear != CompatResult::kOk) return clear;
  const bool stream = config.stream && parts.AttachStream();
  // What the host has sent ahead is not of the episode to come, and its head goes back at the
  // reset: nothing seen of it so far holds.
  if (stream) {
    const int dropped = parts.obs.SkipToHead();
    if (dropped < 0) return Corrupt("the OBS ring");
    stats.dropped += static_cast<std::uint64_t>(dropped);
  }
  const CompatResult sent =
      Send(kCompatEnvReset, stream ? std::uint32_t{kCompatResetStream} : 0U, time);
  if (sent == CompatResult::kOk) phase = Phase::kResetting;
  return sent;
}

CompatResult CompatKernel::Impl::FinishReset(CompatObs& first, CallTime& time) {
  TETRION_CHECK(phase == Phase::kResetting, "FinishReset without BeginReset");
  CompatResponse response = {};
  CompatResult result = AwaitResponse(kCompatEnvReset, response, time);
  if (result == CompatResult::kOk) result = Answer(response);
  if (result != CompatResult::kOk) return result;
  first = {};
  if (response.result != 0) {
    result = TakeObsBlob(response.result, first);
  } else if (config.stream && parts.obs.valid()) {
    streaming = true;
    blob = 0;
    result = Await([&] { return PollFirstObs(first); }, time);
  } else {
    error_result = 0;
    return Fail(CompatResult::kRefused, "the host streams although nobody asked for it");
  }
  if (result != CompatResult::kOk) {
    phase = Phase::kIdle;
    streaming = false;
    return result;
  }
  ++stats.resets;
  return Have(first);
}

CompatResult CompatKernel::Impl::SendAction(std::uint16_t action, CallTime& time) {
  TETRION_CHECK(phase == Phase::kDeciding && !done,
                "an action needs an observation that is not done");
  CompatResult result = CompatResult::kOk;
  if (!streaming) {
    result = Send(kCompatEnvStep, blob << 16 | action, time);
  } else {
    const CompatAction entry = {
        .seq = seq, .action = action, .flags = 0, .ack_seq = seq, .reserved = 0};
    result = Await(
        [&] {
          const CompatRingResult pushed = parts.action.Push(entry);
          if (pushed == CompatRingResult::kFull) return CompatResult::kIdle;
          if (pushed == CompatRingResult::kCorrupt) return Corrupt("the ACTION ring");
          parts.action_bell.Published(pushed == CompatRingResult::kWasEmpty, config.doorbell_every,
                                      stats);
          return CompatResult::kOk;
        },
        time);
  }
  phase = result == CompatResult::kOk ? Phase::kStepping : Phase::kIdle;
  return result;
}

CompatResult CompatKernel::Impl::ReceiveObs(CompatObs& next, CallTime& time) {
  TETRION_CHECK(phase == Phase::kStepping, "ReceiveObs without SendAction");
  CompatResult result = CompatResult::kOk;
  if (streaming) {
    result = Await([&] { return PollNextObs(next); }, time);
  } else {
    CompatResponse response = {};
    result = AwaitResponse(kCompatEnvStep, response, time);
    if (result == CompatResult::kOk) result = Answer(response);
    if (result == CompatResult::kOk) result = TakeObsBlob(response.result, next);
    next.seq = seq + 1;
  }
  if (result != CompatResult::kOk) {
    phase = Phase::kIdle;
    return result;
  }
  ++stats.steps;
  return Have(next);
}

CompatResult CompatKernel::Impl::Have(const CompatObs& obs) {
  phase = Phase::kDeciding;
  seq = obs.seq;
  done = obs.done > 0.5F;
  if (done) ++stats.episodes;
  return CompatResult::kOk;
}

CompatResult CompatKernel::Impl::PollFirstObs(CompatObs& first) {
  for (int i = 0; i < kEntriesPerPoll; ++i) {
    const CompatRingResult popped = parts.obs.Pop(first);
    if (popped == CompatRingResult::kEmpty) return CompatResult::kIdle;
    if (popped == CompatRingResult::kCorrupt) return Corrupt("the OBS ring");
    if (first.seq == 0) return CompatResult::kOk;
    ++stats.dropped;  // queued before the reset
  }
  return CompatResult::kIdle;
}

CompatResult CompatKernel::Impl::PollNextObs(CompatObs& next) {
  CompatRingResult peeked = parts.obs.Peek(next);
  if (peeked == CompatRingResult::kOk && next.seq != seq + 1) peeked = parts.obs.PeekAgain(next);
  if (peeked == CompatRingResult::kCorrupt) return Corrupt("the OBS ring");
  if (peeked != CompatRingResult::kEmpty) {
    parts.obs.Take();
    if (next.seq == seq + 1) return CompatResult::kOk;
    ++stats.seq_errors;
    return Fail(CompatResult::kSeqError, "OBS has seq " + std::to_string(next.seq) + ", expected " +
                                             std::to_string(seq + 1) + ": the stream is closed");
  }
  CompatResponse response;
  const CompatRingResult said = parts.response.Pop(response);
  if (said == CompatRingResult::kEmpty) [[likely]]
    return CompatResult::kIdle;
  if (said == CompatRingResult::kCorrupt) return Corrupt("the response ring");
  const bool closed = response.status == kCompatError && response.orig_cmd == kCompatEnvStep &&
                      response.result != kCompatErrorStreaming;
  if (closed) return Answer(response);
  ++stats.dropped;
  return CompatResult::kIdle;
}

}  // namespace tetrion
