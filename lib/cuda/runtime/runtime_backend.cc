#include <cuda_runtime_api.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/mutex.h"
#include "lib/cuda/backend.h"

// The backend of tetrion::cuda_device: the functions of backend.h by CUDA's runtime, release 13.
// A call that does something on a device names the device first, as the runtime's current device is
// the calling thread's. Calls that free memory or handles, or ask what they are, need none.

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
struct PinnedState {
  void* data;
};

namespace {

// Whether a fault of a kernel or a call of ours is what went wrong, not the device's.
bool IsOurs(cudaError_t status) {
  switch (status) {
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
      return true;
    default:  // the codes of captures have numbers of their own
      return status >= cudaErrorStreamCaptureUnsupported &&
             status <= cudaErrorStreamCaptureWrongThread;
  }
}

// The runtime keeps a failed call's error for the next that asks for the last one; here each call
// answers for itself.
cudaError_t Cleared(cudaError_t status) {
  if (status != cudaSuccess) (void)cudaGetLastError();
  return status;
}

void Check(cudaError_t status, const std::string& what) {
  if (Cleared(status) == cudaSuccess) return;
  const std::string text = what + ": " + cudaGetErrorString(status);
  if (IsOurs(status)) throw Error(ExitCode::kInternal, text);
  throw Error(ExitCode::kTryAgain, text + "; is the device free and its driver new enough?");
}

void Use(int ordinal) {
  Check(cudaSetDevice(ordinal), "choosing a CUDA device");
}

bool Passed(cudaError_t status, const char* what) {
  if (Cleared(status) == cudaErrorNotReady) return false;
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

// Kernels that may use all the shared memory of a device.
struct AllowedKernels {
  Mutex mu;
  std::set<std::pair<int, const void*>> of_device TETRION_GUARDED_BY(mu);
};

// A kernel must ask for more than 48 KB of shared memory, its own arrays included: allowed is what
// the device gives a block, less those arrays. Once for each kernel, so that no launch lowers what
// another one raised.
cudaError_t AllowSharedMemory(const void* function, int ordinal) {
  static AllowedKernels* allowed = new AllowedKernels;  // as long as the process
  const MutexLock lock(allowed->mu);
  if (allowed->of_device.contains({ordinal, function})) return cudaSuccess;
  cudaFuncAttributes attributes;
  int most_bytes = 0;
  cudaError_t status = cudaFuncGetAttributes(&attributes, function);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  }
  if (status == cudaSuccess) {
    status = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  most_bytes - static_cast<int>(attributes.sharedSizeBytes));
  }
  if (status == cudaSuccess) allowed->of_device.emplace(ordinal, function);
  return status;
}

}  // namespace

int DeviceCount() {
  int count = 0;
  const cudaError_t status = Cleared(cudaGetDeviceCount(&count));
  if (status == cudaErrorNoDevice) return 0;
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;  // stays 0 where there is none; an old one is told of below
    if (Cleared(cudaDriverGetVersion(&driver)) == cudaSuccess && driver == 0) return 0;
  }
  Check(status, "counting the devices");
  return count;
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
  const cudaError_t status = Cleared(cudaMalloc(&data, bytes));
  if (status == cudaErrorMemoryAllocation) return nullptr;
  Check(status, "allocating device memory");
  return data;
}

void FreeDevice(void* data) {
  (void)Cleared(cudaFree(data));
}

void* AllocatePinned(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t status = Cleared(cudaHostAlloc(&data, bytes, cudaHostAllocPortable));
  if (status == cudaErrorMemoryAllocation) return nullptr;
  Check(status, "allocating pinned memory");
  return data;
}

void FreePinned(void* data) {
  (void)Cleared(cudaFreeHost(data));
}

PinnedState* PinMemory(int ordinal, void* data, std::size_t bytes) {
  Use(ordinal);
  auto state = std::make_unique<PinnedState>(PinnedState{data});
  const cudaError_t status = Cleared(cudaHostRegister(data, bytes, cudaHostRegisterPortable));
  if (status == cudaErrorMemoryAllocation) return nullptr;
  Check(status, "pinning memory");
  return state.release();
}

void UnpinMemory(PinnedState* range) {
  (void)Cleared(cudaHostUnregister(range->data));
  delete range;
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
  (void)Cleared(cudaStreamDestroy(stream->stream));
  delete stream;
}

void* NativeStream(StreamState* stream) {
  return stream->stream;
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
  (void)Cleared(cudaEventDestroy(event->event));
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

void CopyBytes(void* to, const void* from, const CopyShape& shape, CopyDirection direction,
               MemoryKind host_kind, StreamState* stream) {
  Use(stream->ordinal);
  const cudaMemcpyKind kind = KindOfCopy(direction);
  Check(shape.rows == 1 ? cudaMemcpyAsync(to, from, shape.width, kind, stream->stream)
                        : cudaMemcpy2DAsync(to, shape.to_pitch, from, shape.from_pitch, shape.width,
                                            shape.rows, kind, stream->stream),
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
  if (call.shared_bytes != 0) status = AllowSharedMemory(call.function, stream->ordinal);
  if (status == cudaSuccess) {
    status = cudaLaunchKernel(call.function, ToDim3(call.grid), ToDim3(call.block), call.arguments,
                              call.shared_bytes, stream->stream);
  }
  if (status == cudaSuccess) return;
  Check(status,
        "the launch at " + std::string(call.where.file) + ":" + std::to_string(call.where.line));
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
  (void)Cleared(cudaGraphDestroy(captured));
  Check(status, "making a graph of a capture");
  return state.release();
}

void LaunchGraph(GraphState* graph, StreamState* stream) {
  Use(stream->ordinal);
  Check(cudaGraphLaunch(graph->graph, stream->stream), "launching a graph");
}

void ReleaseGraph(GraphState* graph) {
  (void)Cleared(cudaGraphExecDestroy(graph->graph));
  delete graph;
}

}  // namespace tetrion::cuda::backend
