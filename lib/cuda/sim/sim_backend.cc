#include <cstring>
#include <utility>

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

// Of pageable memory nothing is known.
void CheckEnd(const void* data, std::size_t bytes, MemoryKind kind, const char* what) {
  if (kind != MemoryKind::kPageable) Simulator().CheckWithin(data, bytes, kind, what);
}

sim::Operation CopyOf(void* to, const void* from, std::size_t bytes) {
  sim::Operation operation;
  operation.most_parts = bytes;
  operation.run = [=](const sim::Part& part) {
    const std::size_t begin = part.Begin(bytes);
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                part.End(bytes) - begin);
  };
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

void CopyBytes(void* to, const void* from, std::size_t bytes, CopyDirection direction,
               MemoryKind host_kind, StreamState* stream) {
  const bool to_host = direction == CopyDirection::kDeviceToHost;
  const bool from_host = direction == CopyDirection::kHostToDevice;
  CheckEnd(to, bytes, to_host ? host_kind : MemoryKind::kDevice, "the destination of a copy");
  CheckEnd(from, bytes, from_host ? host_kind : MemoryKind::kDevice, "the source of a copy");
  if (host_kind != MemoryKind::kPageable) {
    Simulator().Enqueue(*stream->queue, CopyOf(to, from, bytes));
    return;
  }
  if (to_host) {
    Simulator().Enqueue(*stream->queue, CopyOf(to, from, bytes));
    SynchronizeStream(stream);
    return;
  }
  // A device reads pageable memory before the call returns.
  auto staged = std::make_shared<std::vector<std::byte>>(bytes);
  std::memcpy(staged->data(), from, bytes);
  sim::Operation operation = CopyOf(to, staged->data(), bytes);
  operation.run = [staged, run = std::move(operation.run)](const sim::Part& part) { run(part); };
  Simulator().Enqueue(*stream->queue, std::move(operation));
}

void SetBytes(void* to, int value, std::size_t bytes, StreamState* stream) {
  CheckEnd(to, bytes, MemoryKind::kDevice, "the memory to be set");
  sim::Operation operation;
  operation.most_parts = bytes;
  operation.run = [=](const sim::Part& part) {
    std::memset(static_cast<std::byte*>(to) + part.Begin(bytes), value,
                part.End(bytes) - part.Begin(bytes));
  };
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
