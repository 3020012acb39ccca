#include "lib/region_v2/compat_kernel.h"

#include <algorithm>
#include <cmath>

#include "lib/core/check.h"
#include "lib/region_v2/compat_heap.h"
#include "lib/region_v2/compat_kernel_calls.h"

namespace tetrion {

// An episode as the kernel plays it: reset, actions, observations.
struct CompatKernel::Impl : CompatKernelCalls {
  using CompatKernelCalls::CompatKernelCalls;

  CompatResult BeginReset(CallTime& time);
  CompatResult FinishReset(CompatObs& first, CallTime& time);
  CompatResult SendAction(std::uint16_t action, CallTime& time);
  CompatResult ReceiveObs(CompatObs& next, CallTime& time);
  CompatResult TakeObsBlob(std::uint32_t id, CompatObs& obs);
  CompatResult PollFirstObs(CompatObs& first);
  CompatResult PollNextObs(CompatObs& next);
  CompatResult Have(const CompatObs& obs);

  bool done = false;
  std::uint32_t seq = 0;   // of the last observation
  std::uint32_t blob = 0;  // that carried it; 0 when streaming
};

CompatResult CompatKernel::Impl::TakeObsBlob(std::uint32_t id, CompatObs& obs) {
  CompatObsBlob payload;
  if (id == 0 || id > kCompatMaxBlobId ||
      !ReadCompatBlob(parts.memory, static_cast<std::uint16_t>(id),
                      std::as_writable_bytes(std::span(&payload, 1)))) {
    return NoBlob(id);
  }
  std::copy(std::begin(payload.obs), std::end(payload.obs), obs.obs);
  obs.reward = payload.reward;
  obs.done = payload.done;
  obs.model_id = payload.model_id;
  blob = id;
  return CompatResult::kOk;
}

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

CompatKernel::CompatKernel(std::span<std::byte> memory, const CompatEndConfig& config)
    : impl_(std::make_unique<Impl>(memory, config)) {}
CompatKernel::CompatKernel(CompatKernel&&) noexcept = default;
CompatKernel::~CompatKernel() = default;

CompatResult CompatKernel::Connect(std::int64_t timeout_ns) {
  Impl& impl = *impl_;
  const Deadline deadline(impl.clock, timeout_ns);
  const auto stopped = [&] {
    return impl.config.stop != nullptr && impl.config.stop->load(std::memory_order_relaxed);
  };
  Impl::CallTime time(impl.clock, timeout_ns);
  impl.problem.clear();
  impl.barrier_due = true;
  CompatResult result = impl.Barrier(time);
  while ((result == CompatResult::kPeerLost || result == CompatResult::kRefused) &&
         !deadline.Passed()) {
    if (stopped()) return CompatResult::kStopped;
    Impl::CallTime left(impl.clock, deadline.LeftNs());
    CompatResponse response;
    // A PING that was taken and not answered went with its host. Of one that was not, any answer
    // may be the one: the next command's barrier makes sure.
    result = impl.parts.command.Drained() ? impl.Barrier(left)
                                          : impl.AwaitResponse(kCompatPing, response, left);
  }
  if (result == CompatResult::kOk) impl.problem.clear();  // of a host that this one succeeded
  return result == CompatResult::kPeerLost ? CompatResult::kTimeout : result;
}

CompatResult CompatKernel::Reset(CompatObs& first) {
  Impl::CallTime time = impl_->AnswerTime();
  const CompatResult sent = impl_->BeginReset(time);
  return sent == CompatResult::kOk ? impl_->FinishReset(first, time) : sent;
}

CompatResult CompatKernel::BeginReset() {
  Impl::CallTime time = impl_->AnswerTime();
  return impl_->BeginReset(time);
}

CompatResult CompatKernel::FinishReset(CompatObs& first) {
  Impl::CallTime time = impl_->AnswerTime();
  return impl_->FinishReset(first, time);
}

CompatResult CompatKernel::Step(std::uint16_t action, CompatObs& next) {
  Impl::CallTime time = impl_->AnswerTime();
  const CompatResult sent = impl_->SendAction(action, time);
  return sent == CompatResult::kOk ? impl_->ReceiveObs(next, time) : sent;
}

CompatResult CompatKernel::SendAction(std::uint16_t action) {
  Impl::CallTime time = impl_->AnswerTime();
  return impl_->SendAction(action, time);
}

CompatResult CompatKernel::ReceiveObs(CompatObs& next) {
  Impl::CallTime time = impl_->AnswerTime();
  return impl_->ReceiveObs(next, time);
}

CompatResult CompatKernel::Command(std::uint16_t cmd, std::uint32_t payload,
                                   CompatResponse& response) {
  TETRION_CHECK(impl_->phase != Impl::Phase::kStepping && impl_->phase != Impl::Phase::kResetting,
                "a command while an observation is outstanding");
  Impl::CallTime time = impl_->AnswerTime();
  CompatResult result = impl_->Barrier(time);
  if (result == CompatResult::kOk) result = impl_->Send(cmd, payload, time);
  if (result == CompatResult::kOk) result = impl_->AwaitResponse(cmd, response, time);
  return result;
}

CompatResult CompatKernel::Metadata(CompatMetadata& metadata) {
  CompatResponse response = {};
  CompatResult result = Command(kCompatEnvReset, kCompatResetMetadata, response);
  if (result == CompatResult::kOk) result = impl_->Answer(response);
  if (result != CompatResult::kOk) return result;
  if (response.result == 0 || response.result > kCompatMaxBlobId ||
      !ReadCompatBlob(impl_->parts.memory, static_cast<std::uint16_t>(response.result),
                      std::as_writable_bytes(std::span(&metadata, 1)))) {
    return impl_->NoBlob(response.result);
  }
  return result;
}

CompatResult CompatKernel::Ping(std::uint32_t payload, std::uint32_t& result) {
  CompatResponse response = {};
  CompatResult outcome = Command(kCompatPing, payload, response);
  if (outcome == CompatResult::kOk) outcome = impl_->Answer(response);
  result = response.result;
  return outcome;
}

CompatResult CompatKernel::Print(std::uint32_t payload) {
  CompatResponse response = {};
  const CompatResult result = Command(kCompatPrint, payload, response);
  return result == CompatResult::kOk ? impl_->Answer(response) : result;
}

std::optional<std::array<float, 4>> CompatKernel::Weights(float model_id) const {
  if (!(model_id >= 1.0F && model_id <= static_cast<float>(kCompatMaxBlobId)) ||
      model_id != std::floor(model_id))
    return std::nullopt;
  std::array<float, 4> weights;
  if (!ReadCompatBlob(impl_->parts.memory, static_cast<std::uint16_t>(model_id),
                      std::as_writable_bytes(std::span(weights))))
    return std::nullopt;
  return weights;
}

void CompatKernel::Heartbeat() {
  impl_->waiter.Heartbeat();
}
bool CompatKernel::streaming() const {
  return impl_->streaming;
}
bool CompatKernel::adopted() const {
  return impl_->adopted;
}
std::uint32_t CompatKernel::epoch() const {
  return CompatWord(impl_->parts.command.header().epoch).load(std::memory_order_relaxed);
}
std::uint32_t CompatKernel::error_result() const {
  return impl_->error_result;
}
const std::string& CompatKernel::problem() const {
  return impl_->problem;
}
const CompatStats& CompatKernel::stats() const {
  return impl_->stats;
}

}  // namespace tetrion
