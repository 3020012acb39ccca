#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/backend.h"
#include "lib/cuda/sim/simulator.h"

// The backend of tetrion::cuda_sim: the functions of backend.h as operations of the simulator.

namespace tetrion::cuda::backend {

struct StreamState {
  std::shared_ptr<sim::StreamQueue> queue;
};
struct EventState {
  sim::StreamPoint point;  // of the last record
};
struct GraphState {
  std::vector<sim::Operation> operations;
};
struct PinnedState {
  void* data;
};

namespace {

constexpr std::uint64_t kMostGridX = (std::uint64_t{1} << 31) - 1, kMostGridYz = 65535;
// A device takes more; here a block's number has 32 bits.
constexpr std::uint64_t kMostBlocks = (std::uint64_t{1} << 32) - 1;

sim::Simulator& Simulator() {
  return sim::Simulator::Get();
}

// As a device refuses it.
void CheckShape(const KernelCall& call) {
  const std::size_t threads = call.block.count();
  const bool fits = threads >= 1 && threads <= sim::BlockRunner::kMostThreads &&
                    call.block.z <= 64 && call.grid.count() >= 1 && call.grid.x <= kMostGridX &&
                    call.grid.y <= kMostGridYz && call.grid.z <= kMostGridYz &&
                    call.grid.count() <= kMostBlocks &&
                    call.shared_bytes <= sim::SharedMemory::kMostBytes;
  if (fits) return;
  throw Error(ExitCode::kInternal,
              "no device runs the launch at " + sim::ToText(call.where) + ": a grid of " +
                  std::to_string(call.grid.count()) + " blocks of " + std::to_string(threads) +
                  " threads with " + std::to_string(call.shared_bytes) + " bytes of shared memory");
}

// The end of a copy, in front of its work and again when it is done. Of pageable memory nothing is
// known.
void AddEnd(sim::Operation& operation, const sim::Extent& end, const char* what) {
  if (end.kind == MemoryKind::kPageable) return;
  Simulator().CheckWithin(end, what);
  operation.touches.push_back(end);
}

// The bytes of a part may end within a row.
void CopyPart(std::byte* to, const std::byte* from, const CopyShape& shape, const sim::Part& part) {
  const std::size_t end = part.End(shape.bytes());
  for (std::size_t i = part.Begin(shape.bytes()); i < end;) {
    const std::size_t row = i / shape.width, column = i % shape.width;
    const std::size_t bytes = std::min(shape.width - column, end - i);
    std::memcpy(to + row * shape.to_pitch + column, from + row * shape.from_pitch + column, bytes);
    i += bytes;
  }
}

sim::Operation CopyOf(void* to, const void* from, const CopyShape& shape) {
  sim::Operation operation;
  operation.most_parts = shape.bytes();
  operation.run = [=](const sim::Part& part) {
    CopyPart(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), shape, part);
  };
  return operation;
}

// A device reads pageable memory before the call returns.
sim::Operation StagedCopyOf(void* to, const void* from, CopyShape shape) {
  auto staged = std::make_shared<std::vector<std::byte>>(shape.bytes());
  const CopyShape packed = {shape.width, shape.rows, shape.width, shape.from_pitch};
  CopyPart(staged->data(), static_cast<const std::byte*>(from), packed, {0, 1});
  shape.from_pitch = shape.width;
  sim::Operation operation = CopyOf(to, staged->data(), shape);
  operation.run = [staged, run = std::move(operation.run)](const sim::Part& part) { run(part); };
  return operation;
}

}  // namespace

int DeviceCount() {
  return 1;
}
std::string DeviceName(int /*ordinal*/) {
  return "simulated device";
}
DeviceMemory MemoryOf(int /*ordinal*/) {
  return Simulator().MemoryState();
}

void* AllocateDevice(int /*ordinal*/, std::size_t bytes) {
  return Simulator().Allocate(bytes, MemoryKind::kDevice);
}
void FreeDevice(void* data) {
  Simulator().Free(data);
}
void* AllocatePinned(std::size_t bytes) {
  return Simulator().Allocate(bytes, MemoryKind::kPinned);
}
void FreePinned(void* data) {
  Simulator().Free(data);
}
PinnedState* PinMemory(int /*ordinal*/, void* data, std::size_t bytes) {
  auto state = std::make_unique<PinnedState>(PinnedState{data});
  Simulator().Pin(data, bytes);
  return state.release();
}
void UnpinMemory(PinnedState* range) {
  Simulator().Unpin(range->data);
  delete range;
}
MemoryKind KindOf(const void* data) {
  return Simulator().KindOf(data);
}

StreamState* OpenStream(int /*ordinal*/, const std::string& name) {
  return new StreamState{Simulator().Open(name)};
}

void CloseStream(StreamState* stream) {
  Simulator().Close(*stream->queue);
  delete stream;
}

void* NativeStream(StreamState* /*stream*/) {
  return nullptr;
}

bool StreamIdle(StreamState* stream) {
  return Simulator().Passed(Simulator().Mark(stream->queue));
}

void SynchronizeStream(StreamState* stream) {
  Simulator().WaitFor(Simulator().Mark(stream->queue));
}

EventState* OpenEvent(int /*ordinal*/) {
  return new EventState;
}
void CloseEvent(EventState* event) {
  delete event;
}

void RecordEvent(EventState* event, StreamState* stream) {
  Simulator().Record(event->point, stream->queue);
}

void WaitForEvent(StreamState* stream, EventState* event) {
  Simulator().EnqueueWait(*stream->queue, event->point);
}

bool EventPassed(EventState* event) {
  return Simulator().Passed(event->point);
}
void SynchronizeEvent(EventState* event) {
  Simulator().WaitFor(event->point);
}

void CopyBytes(void* to, const void* from, const CopyShape& shape, CopyDirection direction,
               MemoryKind host_kind, StreamState* stream) {
  const bool to_host = direction == CopyDirection::kDeviceToHost;
  const bool from_host = direction == CopyDirection::kHostToDevice;
  const bool staged = from_host && host_kind == MemoryKind::kPageable;
  sim::Operation operation = staged ? StagedCopyOf(to, from, shape) : CopyOf(to, from, shape);
  AddEnd(operation, {to, shape.to_bytes(), to_host ? host_kind : MemoryKind::kDevice},
         "the destination of a copy");
  AddEnd(operation, {from, shape.from_bytes(), from_host ? host_kind : MemoryKind::kDevice},
         "the source of a copy");
  Simulator().Enqueue(*stream->queue, std::move(operation));
  if (to_host && host_kind == MemoryKind::kPageable) SynchronizeStream(stream);
}

void SetBytes(void* to, int value, std::size_t bytes, StreamState* stream) {
  sim::Operation operation;
  operation.most_parts = bytes;
  operation.run = [=](const sim::Part& part) {
    std::memset(static_cast<std::byte*>(to) + part.Begin(bytes), value,
                part.End(bytes) - part.Begin(bytes));
  };
  AddEnd(operation, {to, bytes, MemoryKind::kDevice}, "the memory to be set");
  Simulator().Enqueue(*stream->queue, std::move(operation));
}

void LaunchKernel(const KernelCall& call, StreamState* stream) {
  CheckShape(call);
  sim::Operation operation;
  operation.kernel = call;
  operation.most_parts = call.grid.count();
  Simulator().Enqueue(*stream->queue, std::move(operation));
}

void BeginCapture(StreamState* stream) {
  Simulator().BeginCapture(*stream->queue);
}

GraphState* EndCapture(StreamState* stream) {
  return new GraphState{Simulator().EndCapture(*stream->queue)};
}

void LaunchGraph(GraphState* graph, StreamState* stream) {
  for (const sim::Operation& operation : graph->operations) {
    Simulator().Enqueue(*stream->queue, operation);
  }
}

void ReleaseGraph(GraphState* graph) {
  delete graph;
}

}  // namespace tetrion::cuda::backend
