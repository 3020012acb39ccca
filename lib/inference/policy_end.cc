#include "lib/inference/policy_end.h"

#include <cstring>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr std::int64_t kAskAgainNs = kNanosPerSecond;

[[noreturn]] void Refuse(const std::string& path, const std::string& what) {
  throw Error(ExitCode::kConfig,
              path + " is no stream of this learner: " + what + "; restart its actor");
}

}  // namespace

PolicyEnd PolicyEnd::Attach(const std::string& path, const RowLayout& row, std::uint64_t run_id,
                            const Clock& clock) {
  RingConsumer obs =
      RingConsumer::Attach(path, row.Hash(), {.run_id = run_id}, RegionKind::kStream);
  const StreamLayout layout(row, obs.capacity());
  const std::uint64_t bytes = obs.region()->size();
  if (obs.record_bytes() != row.row_bytes || bytes != layout.region_bytes) {
    Refuse(path, "it has " + std::to_string(bytes) + " bytes, " +
                     std::to_string(layout.region_bytes) + " are needed");
  }
  std::byte* payload = obs.region()->payload();
  const auto* block = reinterpret_cast<const StreamBlock*>(payload + layout.block);
  if (block->magic != kStreamMagic || block->version != kStreamVersion) {
    Refuse(path, "it has stream version " + std::to_string(block->version) + ", needed is " +
                     std::to_string(kStreamVersion));
  }
  std::optional<RingProducer> command =
      RingProducer::Adopt(payload + layout.command_ring, layout.command);
  std::optional<RingProducer> action =
      RingProducer::Adopt(payload + layout.action_ring, layout.action);
  if (!command || !action) Refuse(path, "its command or action ring is damaged");
  return PolicyEnd(std::move(obs), layout, payload, clock, std::move(*command), std::move(*action));
}

PolicyEnd::PolicyEnd(RingConsumer obs, const StreamLayout& layout, std::byte* payload,
                     const Clock& clock, RingProducer command, RingProducer action)
    : layout_(layout),
      clock_(&clock),
      block_(reinterpret_cast<StreamBlock*>(payload + layout.block)),
      obs_(std::move(obs)),
      command_(std::move(command)),
      action_(std::move(action)),
      response_(RingConsumer::Over(payload + layout.response_ring, layout.response)),
      epoch_(block_->epoch.load(std::memory_order_relaxed) + 1) {
  block_->epoch.store(epoch_, std::memory_order_relaxed);
  const Bell env_bell(&block_->env_bell);
  command_.SetBell(env_bell);
  action_.SetBell(env_bell);
}

PolicyEnd::State PolicyEnd::Poll() {
  if (state_ != State::kAsking) return state_;
  TakeResponses();
  if (state_ == State::kAsking && clock_->NowNs() >= next_ask_ns_) Ask();
  return state_;
}

void PolicyEnd::Ask() {
  next_ask_ns_ = clock_->NowNs() + kAskAgainNs;
  RingProducer::Loan loan = command_.Claim();
  if (command_.corrupt()) Break("the actor's cursor in the command ring is impossible");
  if (!loan.ok()) return;  // full of earlier questions; the environment's end will find one of them
  const StreamCommand reset = {.cmd = kStreamReset,
                               .flags = 0,
                               .reserved = 0,
                               .epoch = epoch_,
                               .timestamp_ns = static_cast<std::uint64_t>(clock_->NowNs()),
                               .reserved2 = 0};
  std::memcpy(loan.record(), &reset, sizeof reset);
  loan.Complete();
  command_.Publish();
}

// Responses to an earlier policy's end carry its epoch and are passed over.
void PolicyEnd::TakeResponses() {
  for (std::uint64_t i = 0; i < kStreamCommands && state_ == State::kAsking; ++i) {
    const RingPeek peek = response_.Peek();
    if (peek.status == RingStatus::kCorrupt) Break(response_.corrupt_reason());
    if (peek.status == RingStatus::kClosedAndEmpty) Break("the response ring is marked closed");
    if (peek.status != RingStatus::kOk) return;
    StreamResponse response;
    std::memcpy(&response, peek.records, sizeof response);
    response_.Release(1);
    if (response.epoch != epoch_ || response.orig_cmd != kStreamReset) continue;
    if (response.status != kStreamOk) {
      Break("the actor refused ENV_RESET with status " + std::to_string(response.status));
    } else {
      Begin(response.result);
    }
  }
}

// The environment's end goes on with `row`: everything before it is void.
void PolicyEnd::Begin(std::uint64_t row) {
  while (obs_.tail() != row) {
    const RingPeek peek = obs_.Peek();
    const std::uint64_t left = row - obs_.tail();
    if (peek.status != RingStatus::kOk || left > layout_.obs.capacity) {
      Break("the actor means to go on with row " + std::to_string(row) + ", it has published " +
            std::to_string(obs_.head()));
      return;
    }
    obs_.Skip(peek.count < left ? peek.count : left);
  }
  first_row_ = row;
  state_ = State::kStreaming;
}

std::byte* PolicyEnd::Next() {
  if (state_ != State::kStreaming) return nullptr;
  const RingPeek peek = obs_.Peek();
  if (peek.status == RingStatus::kCorrupt) Break(obs_.corrupt_reason());
  if (peek.status != RingStatus::kOk) return nullptr;
  if (action_.FreeRecords() == 0) {
    if (action_.corrupt()) Break("the actor's cursor in the ACTION ring is impossible");
    return nullptr;
  }
  // The peek is const for readers; the policy's end owns the row's empty columns.
  return const_cast<std::byte*>(peek.records);
}

bool PolicyEnd::Answer(const RowDecision& decision) {
  RingProducer::Loan loan = action_.Claim();
  const RingPeek peek = obs_.Peek();
  if (!loan.ok() || peek.status != RingStatus::kOk) {
    Break("rows or room for answers that were there have gone");
    return false;
  }
  const RowView row(layout_.row, const_cast<std::byte*>(peek.records));
  const ActionRecord head = {.seq = next_row(),
                             .ack_seq = next_row(),
                             .policy_version = decision.policy_version,
                             .flags = decision.flags,
                             .reserved = 0};
  // The row is only written, never read again: the environment's end could write there too.
  const std::size_t lanes = layout_.row.spec.lanes;
  row.header->policy_version = decision.policy_version;
  std::memcpy(row.action, decision.action, lanes * sizeof(std::int32_t));
  std::memcpy(row.log_prob, decision.log_prob, lanes * sizeof(float));
  std::memcpy(loan.record(), &head, sizeof head);
  std::memcpy(loan.record() + layout_.actions, decision.action, lanes * sizeof(std::int32_t));
  std::memcpy(loan.record() + layout_.log_probs, decision.log_prob, lanes * sizeof(float));
  loan.Complete();
  action_.Publish();
  obs_.Skip(1);
  return true;
}

void PolicyEnd::Break(std::string problem) {
  problem_ = std::move(problem);
  state_ = State::kBroken;
}

}  // namespace tetrion
