#include "lib/inference/env_end.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/clock.h"

namespace tetrion {
namespace {

StreamBlock* BlockOf(std::byte* payload, const StreamLayout& layout) {
  return reinterpret_cast<StreamBlock*>(payload + layout.block);
}

// The policy's end closes no ring: a closed word is as wrong as an impossible cursor.
std::string ReasonOf(const RingConsumer& ring, const std::string& name) {
  return "the " + name + " ring: " +
         (ring.corrupt_reason().empty() ? "it is marked closed" : ring.corrupt_reason());
}

// Lays out what surrounds the OBS ring. The producers made here leave empty action and command
// rings behind; the policy's end produces into them.
void LayOut(std::byte* payload, const StreamLayout& layout) {
  StreamBlock* block = BlockOf(payload, layout);
  block->magic = kStreamMagic;
  block->version = kStreamVersion;
  block->row_hash = layout.row.Hash();
  block->action_record_bytes = layout.action.record_bytes;
  block->action_capacity = layout.action.capacity;
  static_cast<void>(RingProducer::Over(payload + layout.command_ring, layout.command));
  static_cast<void>(RingProducer::Over(payload + layout.action_ring, layout.action));
}

}  // namespace

EnvEnd::Ends EnvEnd::Create(const std::string& dir, const std::string& name, std::uint64_t run_id,
                            const StreamLayout& layout, std::int32_t action_count) {
  Region region = Region::Create(dir, name, RegionKind::kStream, layout.region_bytes, run_id,
                                 layout.obs.spec_hash);
  std::byte* payload = region.payload();
  LayOut(payload, layout);
  std::unique_ptr<EnvEnd> env_end(new EnvEnd(payload, layout, action_count));
  return {.obs = RingProducer::Create(std::move(region), layout.obs),
          .env_end = std::move(env_end)};
}

EnvEnd::EnvEnd(std::byte* payload, const StreamLayout& layout, std::int32_t action_count)
    : layout_(layout),
      action_count_(action_count),
      bell_(&BlockOf(payload, layout)->env_bell),
      response_(RingProducer::Over(payload + layout.response_ring, layout.response)),
      command_(RingConsumer::Over(payload + layout.command_ring, layout.command)),
      action_(RingConsumer::Over(payload + layout.action_ring, layout.action)) {}

void EnvEnd::Place(Surroundings surroundings) {
  around_ = std::move(surroundings);
  learner_.emplace(around_.learner);
}

// The bell comes with the learner's region; until then the policy's end polls.
void EnvEnd::FindLearner() {
  bool fresh = false;
  LearnerRegion* learner = learner_->Find(&fresh);
  if (!fresh) return;
  around_.set_obs_bell(learner->inference_bell());
  response_.SetBell(learner->inference_bell());
}

AnswererState EnvEnd::Look(std::int64_t timeout_ns) {
  FindLearner();
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  do {
    if (TakeCommands()) return AnswererState::kReset;
    if (!problem_.empty()) return AnswererState::kBroken;
    if (attached_) return AnswererState::kReady;
    DropAnswers();  // Sleep would find them again and again
    if (!problem_.empty()) return AnswererState::kBroken;
  } while (Sleep(deadline.LeftNs()) || !deadline.Passed());
  return AnswererState::kAbsent;
}

AnswerResult EnvEnd::Take(std::uint64_t row, std::int32_t* actions, std::uint32_t& version,
                          std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  while (true) {
    if (TakeCommands()) return AnswerResult::kReset;
    if (!problem_.empty()) return AnswerResult::kBroken;
    const RingPeek peek = action_.Peek();
    if (peek.status == RingStatus::kOk) {
      const AnswerResult result = Read(row, peek.records, actions, version);
      action_.Release(1);
      return result;
    }
    if (peek.status != RingStatus::kEmpty) return Broken(ReasonOf(action_, "ACTION"));
    if (deadline.Passed()) return AnswerResult::kTimeout;
    Sleep(deadline.LeftNs());
  }
}

// True when a policy's end has (re)attached. Bounded, whatever it sends meanwhile.
bool EnvEnd::TakeCommands() {
  bool reset = false;
  for (std::uint64_t i = 0; i < kStreamCommands; ++i) {
    const RingPeek peek = command_.Peek();
    if (peek.status == RingStatus::kCorrupt || peek.status == RingStatus::kClosedAndEmpty) {
      (void)Broken(ReasonOf(command_, "command"));
    }
    if (peek.status != RingStatus::kOk) break;
    StreamCommand command;
    std::memcpy(&command, peek.records, sizeof command);
    command_.Release(1);
    if (command.cmd == kStreamReset) {
      // A repeated question; its answer was on its way already.
      if (attached_ && command.epoch == epoch_) continue;
      Reset(command.epoch);
      reset = true;
    } else {
      (void)Respond({.status = kStreamError,
                     .orig_cmd = command.cmd,
                     .reserved = 0,
                     .epoch = command.epoch,
                     .result = command.cmd,
                     .timestamp_ns = 0});
    }
  }
  return reset;
}

// Answers that are there belong to no row of ours.
void EnvEnd::DropAnswers() {
  for (std::uint64_t left = action_.capacity(); left > 0;) {
    const RingPeek peek = action_.Peek();
    if (peek.status == RingStatus::kEmpty) return;
    if (peek.status != RingStatus::kOk) {
      (void)Broken(ReasonOf(action_, "ACTION"));
      return;
    }
    const std::uint64_t count = std::min<std::uint64_t>(peek.count, left);
    action_.Release(count);
    left -= count;
  }
}

// Answers to rows published so far are void; the policy's end goes on with the row after them.
void EnvEnd::Reset(std::uint64_t epoch) {
  DropAnswers();
  attached_ = Respond({.status = kStreamOk,
                       .orig_cmd = kStreamReset,
                       .reserved = 0,
                       .epoch = epoch,
                       .result = around_.published(),
                       .timestamp_ns = 0});
  epoch_ = epoch;
}

// False when the ring is full: a policy's end that reads no responses gets no more of them.
bool EnvEnd::Respond(const StreamResponse& response) {
  RingProducer::Loan loan = response_.Claim();
  if (response_.corrupt()) {
    (void)Broken("the learner's cursor in the response ring is impossible");
  }
  if (!loan.ok()) return false;
  std::memcpy(loan.record(), &response, sizeof response);
  const auto now_ns = static_cast<std::uint64_t>(MonotonicClock::Get().NowNs());
  std::memcpy(loan.record() + offsetof(StreamResponse, timestamp_ns), &now_ns, sizeof now_ns);
  loan.Complete();
  response_.Publish();
  return true;
}

AnswerResult EnvEnd::Read(std::uint64_t row, const std::byte* record, std::int32_t* actions,
                          std::uint32_t& version) {
  ActionRecord head;
  std::memcpy(&head, record, sizeof head);
  if (head.seq != row || head.ack_seq != row) {
    return Broken("an answer acknowledges row " + std::to_string(head.ack_seq) + " and names row " +
                  std::to_string(head.seq) + ", asked was row " + std::to_string(row));
  }
  if ((head.flags & kActionNotFinite) != 0) return AnswerResult::kNotFinite;
  const std::size_t lanes = layout_.row.spec.lanes;
  // Copied before it is judged: the policy's end could still write here.
  std::memcpy(actions, record + layout_.actions, lanes * sizeof(std::int32_t));
  for (std::size_t l = 0; l < lanes; ++l) {
    if (actions[l] >= 0 && actions[l] < action_count_) continue;
    const std::string bad = std::to_string(actions[l]);
    std::memset(actions, 0, lanes * sizeof(std::int32_t));
    return Broken("the answer to row " + std::to_string(row) + " has action " + bad + " in lane " +
                  std::to_string(l) + ", there are " + std::to_string(action_count_));
  }
  version = head.policy_version;
  return AnswerResult::kAnswer;
}

AnswerResult EnvEnd::Broken(std::string problem) {
  problem_ = "the stream to the learner is broken: " + std::move(problem) + "; restart this actor";
  return AnswerResult::kBroken;
}

// Sleeps until the policy's end rings; false when there was no time left to sleep.
bool EnvEnd::Sleep(std::int64_t timeout_ns) {
  if (timeout_ns <= 0) return false;
  const std::uint32_t armed = bell_.Arm();
  if (command_.Peek().status != RingStatus::kEmpty || action_.Peek().status != RingStatus::kEmpty) {
    bell_.Disarm(armed);
    return true;
  }
  return bell_.Wait(armed, timeout_ns) == BellResult::kRung;
}

}  // namespace tetrion
