#include "lib/cuda/sim/simulator.h"

#include <cstdlib>
#include <exception>
#include <iterator>
#include <thread>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/sim/fault_report.h"

namespace tetrion::cuda::sim {
namespace {

std::string TextFromEnvironment(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

bool IsPassed(const StreamPoint& point) {
  return point.stream == nullptr || point.stream->done >= point.operations;
}

// Lets operations touch device memory while it lives.
class OpenMemory {
 public:
  explicit OpenMemory(Memory& memory) : memory_(memory) { memory_.Open(); }
  ~OpenMemory() { memory_.Close(); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;

 private:
  Memory& memory_;
};

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

Simulator::Simulator() : kernels_(TextFromEnvironment(kKernelLogVariable)) {
  const SimulatorOptions options;
  memory_.set_limit(options.memory_bytes);
  scheduler_.emplace(ScheduleFromEnvironment(options.schedule));
  ReportFaultsIn(memory_);
}

void Simulator::Restart(const SimulatorOptions& options) {
  if (const std::optional<Finding> lost = TakeFinding()) {
    throw Error(ExitCode::kInternal, "a finding was not taken: " + lost->text);
  }
  const MutexLock lock(mu_);
  for (const auto& [number, stream] : streams_) {
    TETRION_CHECK(!stream->open, "no stream is open while the simulator restarts");
  }
  const std::size_t used_bytes = memory_.limit() - memory_.free_bytes();
  if (options.memory_bytes < used_bytes) {
    throw Error(ExitCode::kInternal,
                "a simulated device of " + std::to_string(options.memory_bytes) +
                    " bytes is too small for the " + std::to_string(used_bytes) + " in use");
  }
  next_number_ = 0;
  memory_.set_limit(options.memory_bytes);
  scheduler_.emplace(options.schedule);
}

// Points in work that is dropped have passed: what waits for them goes on.
std::optional<Finding> Simulator::TakeFinding() {
  const MutexLock lock(mu_);
  Drain();
  for (auto next = streams_.begin(); next != streams_.end();) {
    StreamQueue& stream = *next->second;
    stream.waiting.clear();
    stream.done = stream.enqueued;
    stream.part = {0, 0};
    next = stream.open ? std::next(next) : streams_.erase(next);
  }
  return std::exchange(finding_, std::nullopt);
}

void Simulator::ThrowFinding() const {
  if (finding_) throw Error(ExitCode::kInternal, finding_->text);
}

void Simulator::Note(Finding finding) {
  const std::string schedule = ToText(scheduler_->schedule());
  finding.text += "; " + std::string(kScheduleVariable) + "=" + schedule + " repeats the schedule";
  finding_ = std::move(finding);
}

void Simulator::NoteInCapture(const char* what) {
  for (const auto& [number, stream] : streams_) {
    if (finding_ || stream->capturing != std::this_thread::get_id()) continue;
    Note({Diagnosis::kGivenBackInCapture,
          {},
          std::string(what) + " by the thread that captures stream " + stream->name});
  }
}

void Simulator::NoteOverrun(const char* who, CodeLocation where, const StreamQueue& stream) {
  const std::optional<std::string> overrun = memory_.Overrun();
  if (!overrun) return;
  const std::string launch = where.line == 0 ? "" : " launched at " + ToText(where);
  Note({Diagnosis::kIndexPastEnd, where,
        who + launch + " on stream " + stream.name + " " + *overrun});
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
  NoteInCapture("memory is freed");
  memory_.Free(data);
}

MemoryKind Simulator::KindOf(const void* data) const {
  const MutexLock lock(mu_);
  return memory_.KindOf(data);
}

void Simulator::Pin(const void* data, std::size_t bytes) {
  const MutexLock lock(mu_);
  ThrowFinding();
  if (memory_.Pin(data, bytes)) return;
  throw Error(ExitCode::kInternal,
              "a page of the " + std::to_string(bytes) + " bytes to be pinned is pinned already");
}

void Simulator::Unpin(const void* data) {
  const MutexLock lock(mu_);
  NoteInCapture("memory is unpinned");
  memory_.Unpin(data);
}

void Simulator::CheckWithin(const Extent& extent, const char* what) const {
  const MutexLock lock(mu_);
  if (memory_.IsWithin(extent.data, extent.bytes, extent.kind)) return;
  throw Error(ExitCode::kInternal, std::string(what) + " of " + std::to_string(extent.bytes) +
                                       " bytes does not lie within one buffer of " +
                                       Name(extent.kind) + " memory");
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
  Append(stream, {.waits_for = point});
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
  stream.capturing = std::this_thread::get_id();
}

std::vector<Operation> Simulator::EndCapture(StreamQueue& stream) {
  const MutexLock lock(mu_);
  stream.capturing.reset();
  std::vector<Operation> captured = std::exchange(stream.captured, {});
  ThrowFinding();
  return captured;
}

void Simulator::Drain() {
  while (!finding_ && Step()) {
  }
}

// Does one part of one operation; false when no stream can go on.
bool Simulator::Step() {
  std::vector<std::uint64_t> live, numbers;
  for (const auto& [number, stream] : streams_) {
    live.push_back(number);
    if (MayRun(*stream)) numbers.push_back(number);
  }
  if (numbers.empty()) return false;
  RunPart(*streams_.at(numbers[scheduler_->PickStream(numbers, live)]));
  return true;
}

// Throws nothing: freeing memory comes here, too.
void Simulator::RunPart(StreamQueue& stream) {
  try {
    NoteOverrun("the host, before an operation", {}, stream);
    if (!finding_) RunOpened(stream.waiting.front(), stream);
  } catch (const std::exception& error) {
    Note(
        {Diagnosis::kException, {}, "an operation on stream " + stream.name + ": " + error.what()});
  }
  if (finding_ || ++stream.part.index < stream.part.count) return;
  stream.part = {0, 0};
  stream.waiting.pop_front();
  ++stream.done;
  if (!stream.open && stream.waiting.empty()) streams_.erase(stream.number);
}

void Simulator::RunOpened(const Operation& operation, StreamQueue& stream) {
  if (stream.part.count == 0) {
    stream.part = {0, scheduler_->PickParts(operation.most_parts)};
    if (operation.kernel) {
      const auto blocks = static_cast<std::uint32_t>(operation.kernel->grid.count());
      stream.block_order = scheduler_->BlockOrder(blocks);
    }
  }
  const OpenMemory open(memory_);
  if (operation.kernel) {
    kernels_.Note(operation.kernel->function);
    ReserveFaultStack();
    RunBlocks(*operation.kernel, stream);
  }
  if (!operation.run || !MemoryIsThere(operation, stream)) return;
  operation.run(stream.part);
  NoteOverrun("a copy or a fill", {}, stream);
}

// It was there when the operation was made: a graph may outlive its memory.
bool Simulator::MemoryIsThere(const Operation& operation, const StreamQueue& stream) {
  for (const Extent& extent : operation.touches) {
    if (memory_.IsWithin(extent.data, extent.bytes, extent.kind)) continue;
    Note({Diagnosis::kMemoryGone,
          {},
          std::string(sim::Name(Diagnosis::kMemoryGone)) + ": a copy or a fill on stream " +
              stream.name + " touches " + std::to_string(extent.bytes) + " bytes of " +
              Name(extent.kind) + " memory that was freed or is pinned no longer"});
    return false;
  }
  return true;
}

void Simulator::RunBlocks(const KernelCall& call, const StreamQueue& stream) {
  const std::uint64_t blocks = stream.block_order.size();
  for (std::uint64_t i = stream.part.Begin(blocks); i < stream.part.End(blocks); ++i) {
    const std::uint32_t b = stream.block_order[i];
    const Dim3 block = {b % call.grid.x, b / call.grid.x % call.grid.y,
                        b / (call.grid.x * call.grid.y)};
    if (std::optional<Finding> found = blocks_.Run(call, block, *scheduler_)) {
      Note(*std::move(found));
    } else {
      NoteOverrun("a kernel", call.where, stream);
    }
    if (finding_) return;
  }
}

}  // namespace tetrion::cuda::sim
