#include "lib/stream/compat_kernel.h"

#include <cmath>

#include "lib/core/check.h"
#include "lib/stream/compat_heap.h"
#include "lib/stream/compat_kernel_impl.h"

namespace tetrion {

CompatKernel::CompatKernel(std::span<std::byte> memory, const CompatEndConfig& config)
    : impl_(std::make_unique<Impl>(memory, config)) {}
CompatKernel::CompatKernel(CompatKernel&&) noexcept = default;
CompatKernel::~CompatKernel() = default;

CompatResult CompatKernel::Connect(std::int64_t timeout_ns) {
  const Deadline deadline(impl_->clock, timeout_ns);
  impl_->barrier_due = true;
  CompatResult result = impl_->Barrier(timeout_ns);
  while ((result == CompatResult::kPeerLost || result == CompatResult::kRefused) &&
         !deadline.Passed()) {
    CompatResponse response;
    result = impl_->AwaitResponse(kCompatPing, response, deadline.LeftNs());
    // Any PING may be the one: the next command's barrier makes sure.
  }
  return result == CompatResult::kPeerLost ? CompatResult::kTimeout : result;
}

CompatResult CompatKernel::Reset(CompatObs& first) {
  const CompatResult sent = BeginReset();
  return sent == CompatResult::kOk ? FinishReset(first) : sent;
}

CompatResult CompatKernel::BeginReset() {
  Impl& impl = *impl_;
  impl.phase = Impl::Phase::kIdle;
  impl.streaming = false;
  const CompatResult clear = impl.Barrier(impl.config.wait.answer_timeout_ns);
  if (clear != CompatResult::kOk) return clear;
  const bool stream = impl.config.stream && impl.parts.AttachStream();
  const CompatResult sent =
      impl.Send(kCompatEnvReset, stream ? std::uint32_t{kCompatResetStream} : 0U);
  if (sent == CompatResult::kOk) impl.phase = Impl::Phase::kResetting;
  return sent;
}

CompatResult CompatKernel::FinishReset(CompatObs& first) {
  Impl& impl = *impl_;
  TETRION_CHECK(impl.phase == Impl::Phase::kResetting, "FinishReset without BeginReset");
  CompatResponse response = {};
  CompatResult result =
      impl.AwaitResponse(kCompatEnvReset, response, impl.config.wait.answer_timeout_ns);
  if (result == CompatResult::kOk) result = impl.Answer(response);
  if (result != CompatResult::kOk) return result;
  first = {};
  if (response.result != 0) {
    result = impl.TakeObsBlob(response.result, first);
  } else if (impl.config.stream && impl.parts.obs.valid()) {
    impl.streaming = true;
    impl.blob = 0;
    result =
        impl.Await([&] { return impl.PollFirstObs(first); }, impl.config.wait.answer_timeout_ns);
  } else {
    return impl.Fail(CompatResult::kCorrupt, "the host streams although nobody asked for it");
  }
  if (result != CompatResult::kOk) {
    impl.phase = Impl::Phase::kIdle;
    impl.streaming = false;
    return result;
  }
  ++impl.stats.resets;
  return impl.Have(first);
}

CompatResult CompatKernel::Step(std::uint16_t action, CompatObs& next) {
  const CompatResult sent = SendAction(action);
  return sent == CompatResult::kOk ? ReceiveObs(next) : sent;
}

CompatResult CompatKernel::SendAction(std::uint16_t action) {
  Impl& impl = *impl_;
  TETRION_CHECK(impl.phase == Impl::Phase::kDeciding && !impl.done,
                "an action needs an observation that is not done");
  CompatResult result = CompatResult::kOk;
  if (!impl.streaming) {
    result = impl.Send(kCompatEnvStep, impl.blob << 16 | action);
  } else {
    const CompatAction entry = {
        .seq = impl.seq, .action = action, .flags = 0, .ack_seq = impl.seq, .reserved = 0};
    result = impl.Await(
        [&] {
          const CompatRingResult pushed = impl.parts.action.Push(entry);
          if (pushed == CompatRingResult::kFull) return CompatResult::kIdle;
          if (pushed == CompatRingResult::kCorrupt) return impl.Corrupt("the ACTION ring");
          impl.parts.action_bell.Published(pushed == CompatRingResult::kWasEmpty,
                                           impl.config.doorbell_every, impl.stats);
          return CompatResult::kOk;
        },
        impl.config.wait.answer_timeout_ns);
  }
  impl.phase = result == CompatResult::kOk ? Impl::Phase::kStepping : Impl::Phase::kIdle;
  return result;
}

CompatResult CompatKernel::ReceiveObs(CompatObs& next) {
  Impl& impl = *impl_;
  TETRION_CHECK(impl.phase == Impl::Phase::kStepping, "ReceiveObs without SendAction");
  CompatResult result = CompatResult::kOk;
  if (impl.streaming) {
    result = impl.Await([&] { return impl.PollNextObs(next); }, impl.config.wait.answer_timeout_ns);
  } else {
    CompatResponse response = {};
    result = impl.AwaitResponse(kCompatEnvStep, response, impl.config.wait.answer_timeout_ns);
    if (result == CompatResult::kOk) result = impl.Answer(response);
    if (result == CompatResult::kOk) result = impl.TakeObsBlob(response.result, next);
    next.seq = impl.seq + 1;
  }
  if (result != CompatResult::kOk) {
    impl.phase = Impl::Phase::kIdle;
    return result;
  }
  ++impl.stats.steps;
  return impl.Have(next);
}

CompatResult CompatKernel::Command(std::uint16_t cmd, std::uint32_t payload,
                                   CompatResponse& response) {
  TETRION_CHECK(impl_->phase != Impl::Phase::kStepping && impl_->phase != Impl::Phase::kResetting,
                "a command while an observation is outstanding");
  const std::int64_t timeout_ns = impl_->config.wait.answer_timeout_ns;
  CompatResult result = impl_->Barrier(timeout_ns);
  if (result == CompatResult::kOk) result = impl_->Send(cmd, payload);
  if (result == CompatResult::kOk) result = impl_->AwaitResponse(cmd, response, timeout_ns);
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
