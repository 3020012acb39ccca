#include "lib/cuda/sim/simulator.h"

#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/sim/fault_report.h"

namespace tetrion::cuda::sim {
namespace {

bool IsPassed(const StreamPoint& point) {
  return point.stream == nullptr || point.stream->done >= point.operations;
}

bool MayRun(const StreamQueue& stream) {
  if (stream.waiting.empty()) return false;
  const Operation& first = stream.waiting.front();
  return !first.waits_for || IsPassed(*first.waits_for);
}

}  // namespace

Simulator& Simulator::Get() {
  static Simulator* simulator = new Simulator;  // as long as the process: static buffers use it
  return *simulator;
}

Simulator::Simulator() {
  const SimulatorOptions options;
  memory_.set_limit(options.memory_bytes);
  scheduler_.emplace(ScheduleFromEnvironment(options.schedule));
  ReportFaultsIn(memory_);
}

void Simulator::Restart(const SimulatorOptions& options) {
  const MutexLock lock(mu_);
  for (const auto& [number, stream] : streams_) {
    TETRION_CHECK(!stream->open, "no stream is open while the simulator restarts");
  }
  streams_.clear();
  next_number_ = 0;
  finding_.reset();
  memory_.set_limit(options.memory_bytes);
  scheduler_.emplace(options.schedule);
}

std::optional<Finding> Simulator::finding() const {
  const MutexLock lock(mu_);
  return finding_;
}

void Simulator::ThrowFinding() const {
  if (finding_) throw Error(ExitCode::kInternal, finding_->text);
}

void Simulator::Note(Finding finding) {
  const std::string schedule = ToText(scheduler_->schedule());
  finding.text += "; " + std::string(kScheduleVariable) + "=" + schedule + " repeats the schedule";
  finding_ = std::move(finding);
}

DeviceMemory Simulator::MemoryState() const {
  const MutexLock lock(mu_);
  return {memory_.free_bytes(), memory_.limit()};
}

void* Simulator::Allocate(std::size_t bytes, MemoryKind kind) {
  const MutexLock lock(mu_);
  ThrowFinding();
  return memory_.Allocate(bytes, kind);
}

// As on a device, all work that may use the memory comes first.
void Simulator::Free(void* data) {
  const MutexLock lock(mu_);
  Drain();
  memory_.Free(data);
}

MemoryKind Simulator::KindOf(const void* data) const {
  const MutexLock lock(mu_);
  return memory_.KindOf(data);
}

void Simulator::CheckDevice(const void* data, std::size_t bytes, const char* what) const {
  const MutexLock lock(mu_);
  if (memory_.IsDevice(data, bytes)) return;
  throw Error(ExitCode::kInternal, std::string(what) + " of " + std::to_string(bytes) +
                                       " bytes does not lie within one buffer of device memory");
}

std::shared_ptr<StreamQueue> Simulator::Open(const std::string& name) {
  const MutexLock lock(mu_);
  ThrowFinding();
  auto stream = std::make_shared<StreamQueue>();
  stream->number = next_number_++;
  stream->name = name;
  streams_.emplace(stream->number, stream);
  return stream;
}

// What is enqueued is still done, as on a device.
void Simulator::Close(StreamQueue& stream) {
  const MutexLock lock(mu_);
  stream.open = false;
  if (stream.waiting.empty()) streams_.erase(stream.number);
}

void Simulator::Enqueue(StreamQueue& stream, Operation operation) {
  const MutexLock lock(mu_);
  Append(stream, std::move(operation));
}

void Simulator::Append(StreamQueue& stream, Operation operation) {
  ThrowFinding();
  if (stream.capturing) {
    stream.captured.push_back(std::move(operation));
    return;
  }
  stream.waiting.push_back(std::move(operation));
  ++stream.enqueued;
}

StreamPoint Simulator::Mark(const std::shared_ptr<StreamQueue>& stream) {
  const MutexLock lock(mu_);
  ThrowFinding();
  return {stream, stream->enqueued};
}

void Simulator::Record(StreamPoint& point, const std::shared_ptr<StreamQueue>& stream) {
  const MutexLock lock(mu_);
  ThrowFinding();
  point = {stream, stream->enqueued};
}

void Simulator::EnqueueWait(StreamQueue& stream, const StreamPoint& point) {
  const MutexLock lock(mu_);
  Operation operation;
  operation.waits_for = point;
  Append(stream, std::move(operation));
}

bool Simulator::Passed(const StreamPoint& point) {
  const MutexLock lock(mu_);
  ThrowFinding();
  for (std::uint32_t steps = scheduler_->PickQuerySteps(); steps > 0 && Step(); --steps) {
  }
  ThrowFinding();
  return IsPassed(point);
}

void Simulator::WaitFor(const StreamPoint& point) {
  const MutexLock lock(mu_);
  ThrowFinding();
  while (!IsPassed(point)) {
    TETRION_CHECK(Step(), "streams wait for earlier work only, so one of them can go on");
    ThrowFinding();
  }
}

void Simulator::BeginCapture(StreamQueue& stream) {
  const MutexLock lock(mu_);
  ThrowFinding();
  stream.capturing = true;
}

std::vector<Operation> Simulator::EndCapture(StreamQueue& stream) {
  const MutexLock lock(mu_);
  ThrowFinding();
  stream.capturing = false;
  return std::exchange(stream.captured, {});
}

void Simulator::Drain() {
  while (!finding_ && Step()) {
  }
}

// Does one part of one operation; false when no stream can go on.
bool Simulator::Step() {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, stream] : streams_) {
    if (MayRun(*stream)) numbers.push_back(number);
  }
  if (numbers.empty()) return false;
  RunPart(*streams_.at(numbers[scheduler_->PickStream(numbers, next_number_)]));
  return true;
}

void Simulator::RunPart(StreamQueue& stream) {
  Operation& operation = stream.waiting.front();
  if (stream.part.count == 0) {
    stream.part = {0, scheduler_->PickParts(operation.most_parts)};
    if (operation.kernel) {
      const auto blocks = static_cast<std::uint32_t>(operation.kernel->grid.count());
      stream.block_order = scheduler_->BlockOrder(blocks);
    }
  }
  memory_.Open();
  if (operation.kernel) RunBlocks(*operation.kernel, stream);
  if (operation.run) operation.run(stream.part);
  memory_.Close();
  if (++stream.part.index < stream.part.count) return;
  stream.part = {0, 0};
  stream.waiting.pop_front();
  ++stream.done;
  if (!stream.open && stream.waiting.empty()) streams_.erase(stream.number);
}

void Simulator::RunBlocks(const KernelCall& call, const StreamQueue& stream) {
  const std::uint64_t blocks = stream.block_order.size();
  for (std::uint64_t i = stream.part.Begin(blocks); i < stream.part.End(blocks); ++i) {
    const std::uint32_t b = stream.block_order[i];
    const Dim3 block = {b % call.grid.x, b / call.grid.x % call.grid.y,
                        b / (call.grid.x * call.grid.y)};
    std::optional<Finding> found = blocks_.Run(call, block, *scheduler_);
    if (!found) {
      if (const std::optional<std::string> overrun = memory_.Overrun()) {
        found = Finding{Diagnosis::kIndexPastEnd, call.where,
                        "a kernel launched at " + ToText(call.where) + " on stream " + stream.name +
                            " " + *overrun};
      }
    }
    if (!found) continue;
    Note(*std::move(found));
    return;
  }
}

}  // namespace tetrion::cuda::sim
