#include "lib/region_v2/compat_kernel.h"

#include <cmath>

#include "lib/core/check.h"
#include "lib/region_v2/compat_heap.h"
#include "lib/region_v2/compat_kernel_impl.h"

namespace tetrion {

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
  impl.barrier_due = true;
  CompatResult result = impl.Barrier(time);
  while ((result == CompatResult::kPeerLost || result == CompatResult::kRefused) &&
         !deadline.Passed()) {
    if (stopped()) return CompatResult::kStopped;
    Impl::CallTime left(impl.clock, deadline.LeftNs());
    CompatResponse response;
    result = impl.AwaitResponse(kCompatPing, response, left);
    // Any PING may be the one: the next command's barrier makes sure.
  }
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
