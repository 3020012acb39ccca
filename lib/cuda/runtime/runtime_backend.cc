#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "lib/core/error.h"
#include "lib/cuda/backend.h"

// The backend of tetrion::cuda_device: the functions of backend.h by CUDA's runtime, release 13.
// Every call names its device first: the runtime's current device is the calling thread's.

namespace tetrion::cuda::backend {

struct StreamState {
  int ordinal;
  cudaStream_t stream;
};
struct EventState {
  int ordinal;
  cudaEvent_t event;
};
struct GraphState {
  cudaGraphExec_t graph;
};

namespace {

// More shared memory than this a kernel must ask for.
constexpr std::size_t kPlainSharedBytes = 48 * 1024;

void Check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ExitCode::kTryAgain, std::string(what) + ": " + cudaGetErrorString(status) +
                                       "; is the device free and its driver new enough?");
}

void Use(int ordinal) {
  Check(cudaSetDevice(ordinal), "choosing a CUDA device");
}

bool Passed(cudaError_t status, const char* what) {
  if (status == cudaErrorNotReady) return false;
  Check(status, what);
  return true;
}

cudaMemcpyKind KindOfCopy(CopyDirection direction) {
  if (direction == CopyDirection::kHostToDevice) return cudaMemcpyHostToDevice;
  if (direction == CopyDirection::kDeviceToHost) return cudaMemcpyDeviceToHost;
  return cudaMemcpyDeviceToDevice;
}

dim3 ToDim3(const Dim3& extents) {
  return {extents.x, extents.y, extents.z};
}

}  // namespace

int DeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string DeviceName(int ordinal) {
  cudaDeviceProp properties;
  Check(cudaGetDeviceProperties(&properties, ordinal), "asking for a device's name");
  return properties.name;
}

DeviceMemory MemoryOf(int ordinal) {
  Use(ordinal);
  DeviceMemory memory;
  Check(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes), "asking for a device's memory");
  return memory;
}

void* AllocateDevice(int ordinal, std::size_t bytes) {
  Use(ordinal);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // an answer, not a fault of later calls
    return nullptr;
  }
  Check(status, "allocating device memory");
  return data;
}

void FreeDevice(void* data) {
  (void)cudaFree(data);
}

void* AllocatePinned(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  Check(status, "allocating pinned memory");
  return data;
}

void FreePinned(void* data) {
  (void)cudaFreeHost(data);
}

MemoryKind KindOf(const void* data) {
  cudaPointerAttributes attributes;
  Check(cudaPointerGetAttributes(&attributes, data), "asking what memory a copy names");
  if (attributes.type == cudaMemoryTypeHost) return MemoryKind::kPinned;
  return attributes.type == cudaMemoryTypeUnregistered ? MemoryKind::kPageable
                                                       : MemoryKind::kDevice;
}

StreamState* OpenStream(int ordinal, const std::string& /*name*/) {
  Use(ordinal);
  auto state = std::make_unique<StreamState>(StreamState{ordinal, nullptr});
  Check(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking), "opening a stream");
  return state.release();
}

void CloseStream(StreamState* stream) {
  (void)cudaStreamDestroy(stream->stream);
  delete stream;
}

bool StreamIdle(StreamState* stream) {
  Use(stream->ordinal);
  return Passed(cudaStreamQuery(stream->stream), "asking whether a stream is idle");
}

void SynchronizeStream(StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaStreamSynchronize(stream->stream), "waiting for a stream");
}

EventState* OpenEvent(int ordinal) {
  Use(ordinal);
  auto state = std::make_unique<EventState>(EventState{ordinal, nullptr});
  Check(cudaEventCreateWithFlags(&state->event, cudaEventDisableTiming), "opening an event");
  return state.release();
}

void CloseEvent(EventState* event) {
  (void)cudaEventDestroy(event->event);
  delete event;
}

void RecordEvent(EventState* event, StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaEventRecord(event->event, stream->stream), "recording an event");
}

void WaitForEvent(StreamState* stream, EventState* event) {
  Use(stream->ordinal);
  Check(cudaStreamWaitEvent(stream->stream, event->event, 0), "letting a stream wait");
}

bool EventPassed(EventState* event) {
  Use(event->ordinal);
  return Passed(cudaEventQuery(event->event), "asking whether an event has passed");
}

void SynchronizeEvent(EventState* event) {
  Use(event->ordinal);
  Check(cudaEventSynchronize(event->event), "waiting for an event");
}

void CopyBytes(void* to, const void* from, std::size_t bytes, CopyDirection direction,
               MemoryKind host_kind, StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaMemcpyAsync(to, from, bytes, KindOfCopy(direction), stream->stream),
        "enqueueing a copy");
  // The runtime may return earlier for a small copy; the promise of device.h is the same for all.
  if (host_kind == MemoryKind::kPageable) SynchronizeStream(stream);
}

void SetBytes(void* to, int value, std::size_t bytes, StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaMemsetAsync(to, value, bytes, stream->stream), "enqueueing a fill");
}

void LaunchKernel(const KernelCall& call, StreamState* stream) {
  Use(stream->ordinal);
  cudaError_t status = cudaSuccess;
  if (call.shared_bytes > kPlainSharedBytes) {
    status = cudaFuncSetAttribute(call.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(call.shared_bytes));
  }
  if (status == cudaSuccess) {
    status = cudaLaunchKernel(call.function, ToDim3(call.grid), ToDim3(call.block), call.arguments,
                              call.shared_bytes, stream->stream);
  }
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  Check(status,
        ("the launch at " + std::string(call.where.file) + ":" + std::to_string(call.where.line))
            .c_str());
}

// Other threads go on with calls that a global capture would make fail.
void BeginCapture(StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaStreamBeginCapture(stream->stream, cudaStreamCaptureModeThreadLocal),
        "beginning a capture");
}

GraphState* EndCapture(StreamState* stream) {
  Use(stream->ordinal);
  cudaGraph_t captured = nullptr;
  Check(cudaStreamEndCapture(stream->stream, &captured), "ending a capture");
  auto state = std::make_unique<GraphState>(GraphState{nullptr});
  const cudaError_t status = cudaGraphInstantiate(&state->graph, captured, 0);
  (void)cudaGraphDestroy(captured);
  Check(status, "making a graph of a capture");
  return state.release();
}

void LaunchGraph(GraphState* graph, StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaGraphLaunch(graph->graph, stream->stream), "launching a graph");
}

void ReleaseGraph(GraphState* graph) {
  (void)cudaGraphExecDestroy(graph->graph);
  delete graph;
}

}  // namespace tetrion::cuda::backend
