#include "lib/region_v2/compat_host.h"

#include <algorithm>
#include <utility>

#include "lib/core/log.h"
#include "lib/region_v2/compat_heap.h"
#include "lib/region_v2/compat_region.h"

namespace tetrion {
namespace {

constexpr std::uint32_t kPollsPerLook = 1024;  // between looks at clock and stop flag under load
constexpr int kEntriesPerPoll = 64;            // bounds a poll whatever the kernel queues
constexpr std::int64_t kPrintEveryNs = kNanosPerSecond;  // bounds the log whatever it prints

}  // namespace

struct CompatHost::Impl {
  // `memory` has been laid out.
  Impl(std::span<std::byte> memory, CompatEnv& environment, const CompatEndConfig& end_config);

  CompatResult Poll();
  CompatResult PollCommands();
  CompatResult PollActions();
  CompatResult Handle(const CompatCommand& command);
  CompatResult HandleReset(std::uint32_t payload);
  void HandleMetadata();
  void HandlePrint(std::uint32_t payload);
  void HandleStep(std::uint32_t payload);
  CompatResult HandleAction(const CompatAction& action);
  CompatStep StepEnv(std::uint16_t action);
  std::uint16_t StoreObs(const CompatStep& step);
  void PushObs(const CompatStep& step);
  void Upload();
  void Recycle(std::uint16_t* outstanding_blob);
  void Respond(std::uint16_t status, std::uint16_t cmd, std::uint32_t result);
  void Refuse(std::uint16_t cmd, std::uint32_t result);
  void TellClosed(CompatErrorCode code);
  CompatResult Corrupt(const char* what);
  CompatResult CloseStream(CompatErrorCode code, std::string text);

  const CompatEndConfig config;
  const Clock& clock;
  CompatEnv& env;
  const CompatMetadata spec;
  CompatParts parts;
  CompatHeap heap;
  CompatStats stats;
  CompatWaiter waiter;
  const std::uint64_t kernel_signs_at_attach;

  bool streaming = false;
  bool running = false;   // an episode is, and is not done
  std::uint32_t seq = 0;  // of the last observation
  // An unrequested ERROR that found the response ring full. No command is served before it is sent,
  // hence no stream runs and there is never a second one.
  std::optional<CompatErrorCode> untold;
  std::optional<std::array<float, 4>> new_weights;
  std::uint16_t model_blob = 0;
  std::uint16_t metadata_blob = 0;
  std::array<std::uint16_t, kCompatMaxOutstanding> outstanding = {};  // 0: free place
  std::int64_t next_print_ns = 0;
  std::uint64_t left_out = 0;  // PRINTs since the last line
  std::string problem;
};

CompatHost::Impl::Impl(std::span<std::byte> memory, CompatEnv& environment,
                       const CompatEndConfig& end_config)
    : config(end_config),
      clock(ClockOf(config)),
      env(environment),
      spec(env.metadata()),
      parts(memory, clock),
      heap(memory),
      waiter(config, parts.action_bell, parts.obs_bell, parts.host_signs, parts.kernel_signs,
             stats),
      kernel_signs_at_attach(waiter.PeerSigns()) {
  // A kernel may wait for the answer of the host that was here before, also for the first.
  if (parts.command.tail() != 0 ||
      CompatWord(parts.doorbell->rsp_writes).load(std::memory_order_relaxed) != 0)
    TellClosed(kCompatErrorRestart);
}

// Callers have seen to a free slot in the response ring.
void CompatHost::Impl::Respond(std::uint16_t status, std::uint16_t cmd, std::uint32_t result) {
  const CompatResponse response = {
      .status = status,
      .orig_cmd = cmd,
      .result = result,
      .timestamp_us = static_cast<std::uint64_t>(clock.NowNs() / 1000),
  };
  static_cast<void>(parts.response.Push(response));
  CompatDoorbellBlock& bell = *parts.doorbell;
  const auto writes = CompatWord(bell.rsp_writes);
  CompatWord(bell.rsp_doorbell).store(parts.response.head(), std::memory_order_relaxed);
  writes.store(writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  parts.obs_bell.WakeSleeper(stats);
}

void CompatHost::Impl::Refuse(std::uint16_t cmd, std::uint32_t result) {
  ++stats.errors;
  Respond(kCompatError, cmd, result);
}

CompatResult CompatHost::Impl::Corrupt(const char* what) {
  problem = std::string(what) + " holds an impossible index";
  streaming = false;
  return CompatResult::kCorrupt;
}

CompatResult CompatHost::Impl::CloseStream(CompatErrorCode code, std::string text) {
  streaming = running = false;
  problem = std::move(text) + ": the stream is closed";
  TellClosed(code);
  return CompatResult::kSeqError;
}

// Says now or as soon as the response ring has room that the stream is over.
void CompatHost::Impl::TellClosed(CompatErrorCode code) {
  if (parts.response.Space() == CompatRingResult::kOk) {
    untold.reset();
    Refuse(kCompatEnvStep, code);
  } else {
    untold = code;
  }
}

CompatStep CompatHost::Impl::StepEnv(std::uint16_t action) {
  const CompatStep step = env.Step(action);
  ++seq;
  ++stats.steps;
  running = !step.terminated && !step.truncated;
  if (!running) ++stats.episodes;
  if (step.truncated && !step.terminated) ++stats.truncated;
  return step;
}

void CompatHost::Impl::PushObs(const CompatStep& step) {
  const CompatObs entry = {
      .seq = seq,
      .obs = {step.obs[0], step.obs[1], step.obs[2], step.obs[3]},
      .reward = step.reward,
      .done = step.terminated || step.truncated ? 1.0F : 0.0F,
      .model_id = static_cast<float>(model_blob),
  };
  // The caller has seen to a free slot.
  const bool was_empty = parts.obs.Push(entry) == CompatRingResult::kWasEmpty;
  parts.obs_bell.Published(was_empty, config.doorbell_every, stats);
}

// 0 when 8 observations are outstanding or the heap is full.
std::uint16_t CompatHost::Impl::StoreObs(const CompatStep& step) {
  const auto place = std::find(outstanding.begin(), outstanding.end(), 0);
  if (place == outstanding.end()) return 0;
  const CompatObsBlob payload = {
      .obs = {step.obs[0], step.obs[1], step.obs[2], step.obs[3]},
      .reward = step.reward,
      .done = step.terminated || step.truncated ? 1.0F : 0.0F,
      .model_id = static_cast<float>(model_blob),
  };
  *place = heap.Allocate(kCompatBlobTensor, std::as_bytes(std::span(&payload, 1)));
  return *place;
}

void CompatHost::Impl::Recycle(std::uint16_t* outstanding_blob) {
  heap.Free(*outstanding_blob);
  *outstanding_blob = 0;
}

void CompatHost::Impl::Upload() {
  if (!new_weights) return;
  heap.Free(model_blob);
  model_blob = heap.Allocate(kCompatBlobTensor, std::as_bytes(std::span(*new_weights)));
  new_weights.reset();
}

void CompatHost::Impl::HandleMetadata() {
  heap.Free(metadata_blob);
  metadata_blob = heap.Allocate(kCompatBlobRaw, std::as_bytes(std::span(&spec, 1)));
  Respond(metadata_blob != 0 ? kCompatOk : kCompatBusy, kCompatEnvReset, metadata_blob);
}

void CompatHost::Impl::HandlePrint(std::uint32_t payload) {
  const std::int64_t now_ns = clock.NowNs();
  if (now_ns < next_print_ns) {
    ++left_out;
  } else {
    log::info("the kernel prints {} ({} prints before it left out)", payload, left_out);
    left_out = 0;
    next_print_ns = now_ns + kPrintEveryNs;
  }
  Respond(kCompatOk, kCompatPrint, 0);
}

// The kernel keeps off the stream rings until the response: whatever is queued goes.
CompatResult CompatHost::Impl::HandleReset(std::uint32_t payload) {
  const bool rings = parts.AttachStream();
  if (rings) {
    const int actions = parts.action.SkipToHead();
    const int observations = parts.obs.RewindHead();
    if (actions < 0) return Corrupt("the ACTION ring");
    if (observations < 0) return Corrupt("the OBS ring");
    stats.dropped += static_cast<std::uint64_t>(actions) + static_cast<std::uint64_t>(observations);
  }
  for (std::uint16_t& blob : outstanding) Recycle(&blob);
  Upload();
  streaming = rings && config.stream && (payload & kCompatResetStream) != 0;
  running = true;
  seq = 0;
  ++stats.resets;
  const CompatStep first = {.obs = env.Reset()};
  if (streaming) {
    PushObs(first);
    Respond(kCompatOk, kCompatEnvReset, 0);
  } else {
    const std::uint16_t blob = StoreObs(first);
    Respond(blob != 0 ? kCompatOk : kCompatBusy, kCompatEnvReset, blob);
  }
  return CompatResult::kOk;
}

void CompatHost::Impl::HandleStep(std::uint32_t payload) {
  const auto action = static_cast<std::uint16_t>(payload & 0xFFFFU);
  const auto ack = static_cast<std::uint16_t>(payload >> 16);
  if (streaming) return Refuse(kCompatEnvStep, kCompatErrorStreaming);
  if (ack != 0) {
    const auto acked = std::find(outstanding.begin(), outstanding.end(), ack);
    if (acked == outstanding.end()) return Refuse(kCompatEnvStep, kCompatErrorAck);
    Recycle(&*acked);
  }
  if (!running) return Refuse(kCompatEnvStep, kCompatErrorNoEpisode);
  if (action >= spec.action_count) return Refuse(kCompatEnvStep, kCompatErrorAction);
  // The environment must not step for an observation that has no place to go.
  if (std::find(outstanding.begin(), outstanding.end(), 0) == outstanding.end())
    return Respond(kCompatBusy, kCompatEnvStep, 0);
  const std::uint16_t blob = StoreObs(StepEnv(action));
  Respond(blob != 0 ? kCompatOk : kCompatBusy, kCompatEnvStep, blob);
}

CompatResult CompatHost::Impl::Handle(const CompatCommand& command) {
  ++stats.commands;
  switch (command.cmd) {
    case kCompatPing:
      Respond(kCompatOk, command.cmd, command.payload);
      break;
    case kCompatPrint:
      HandlePrint(command.payload);
      break;
    case kCompatEnvReset:
      if ((command.payload & kCompatResetMetadata) == 0) return HandleReset(command.payload);
      HandleMetadata();
      break;
    case kCompatEnvStep:
      HandleStep(command.payload);
      break;
    default:
      Refuse(command.cmd, command.cmd);
      break;
  }
  return CompatResult::kOk;
}

CompatResult CompatHost::Impl::HandleAction(const CompatAction& action) {
  if (!running) {
    ++stats.seq_errors;
    return CloseStream(kCompatErrorSeq,
                       "ACTION " + std::to_string(action.seq) + " answers a done observation");
  }
  if (action.seq != seq) {
    ++stats.seq_errors;
    return CloseStream(kCompatErrorSeq, "ACTION has seq " + std::to_string(action.seq) +
                                            ", expected " + std::to_string(seq));
  }
  if (action.action >= spec.action_count) {
    return CloseStream(kCompatErrorAction, "ACTION " + std::to_string(action.seq) + " has action " +
                                               std::to_string(action.action));
  }
  PushObs(StepEnv(action.action));
  return CompatResult::kOk;
}

CompatResult CompatHost::Impl::PollCommands() {
  if (untold) [[unlikely]]
    TellClosed(*untold);
  CompatResult result = CompatResult::kIdle;
  for (int i = 0; i < kEntriesPerPoll; ++i) {
    // A command stays in its ring until its response has room.
    const CompatRingResult space = parts.response.Space();
    if (space == CompatRingResult::kCorrupt) return Corrupt("the response ring");
    if (space == CompatRingResult::kFull) return result;
    CompatCommand command;
    const CompatRingResult popped = parts.command.Pop(command);
    if (popped == CompatRingResult::kCorrupt) return Corrupt("the command ring");
    if (popped == CompatRingResult::kEmpty) return result;
    result = Handle(command);
    if (result != CompatResult::kOk) return result;
  }
  return result;
}

CompatResult CompatHost::Impl::PollActions() {
  CompatResult result = CompatResult::kIdle;
  for (int i = 0; i < kEntriesPerPoll; ++i) {
    const CompatRingResult space = parts.obs.Space();
    if (space == CompatRingResult::kCorrupt) return Corrupt("the OBS ring");
    if (space == CompatRingResult::kFull) return result;
    CompatAction action;
    CompatRingResult peeked = parts.action.Peek(action);
    const bool meant = running && action.seq == seq;
    if (peeked == CompatRingResult::kOk && !meant) peeked = parts.action.PeekAgain(action);
    if (peeked == CompatRingResult::kCorrupt) return Corrupt("the ACTION ring");
    if (peeked == CompatRingResult::kEmpty) return result;
    parts.action.Take();
    result = HandleAction(action);
    if (result != CompatResult::kOk) return result;
  }
  return result;
}

CompatResult CompatHost::Impl::Poll() {
  const CompatResult commands = PollCommands();
  if (commands != CompatResult::kIdle && commands != CompatResult::kOk) return commands;
  if (!streaming) return commands;
  const CompatResult actions = PollActions();
  return actions == CompatResult::kIdle ? commands : actions;
}

CompatHost::CompatHost(std::span<std::byte> memory, CompatEnv& env, const CompatEndConfig& config,
                       std::int64_t timeout_ns) {
  AwaitCompatLayout(memory, config, timeout_ns);
  impl_ = std::make_unique<Impl>(memory, env, config);
}
CompatHost::CompatHost(CompatHost&&) noexcept = default;
CompatHost::~CompatHost() = default;

void CompatHost::SetWeights(const std::array<float, 4>& weights) {
  impl_->new_weights = weights;
}

CompatResult CompatHost::Poll() {
  return impl_->Poll();
}

CompatResult CompatHost::Serve(std::int64_t timeout_ns) {
  Impl& impl = *impl_;
  const Deadline deadline(impl.clock, timeout_ns);
  for (std::uint32_t worked = 0;;) {
    const CompatResult result = impl.Poll();
    if (result == CompatResult::kIdle) {
      if (impl.waiter.Spin()) continue;
      const CompatResult rest = impl.waiter.Rest(deadline);
      if (rest == CompatResult::kTimeout) return CompatResult::kOk;
      if (rest != CompatResult::kOk) return rest;
      continue;
    }
    impl.waiter.Done();
    if (result != CompatResult::kOk) return result;
    if (++worked % kPollsPerLook == 0) {
      const auto* stop = impl.config.stop;
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return CompatResult::kStopped;
      if (deadline.Passed()) return CompatResult::kOk;
    }
  }
}

void CompatHost::Heartbeat() {
  impl_->waiter.Heartbeat();
}
bool CompatHost::kernel_seen() const {
  return impl_->waiter.PeerSigns() != impl_->kernel_signs_at_attach;
}
bool CompatHost::streaming() const {
  return impl_->streaming;
}
const std::string& CompatHost::problem() const {
  return impl_->problem;
}
const CompatStats& CompatHost::stats() const {
  return impl_->stats;
}

}  // namespace tetrion
