#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "lib/cuda/activity.h"
#include "lib/cuda/code_location.h"

// The seam between device.h and what carries it out. Two libraries define these functions, and a
// program links one of them: tetrion::cuda_sim (sim/sim_backend.cc) or tetrion::cuda_device
// (runtime/runtime_backend.cc). Only stream, device and launch.h call them.
//
// Any thread may call any function. All of them throw Error: kTryAgain when the device is missing,
// full or failing, kInternal for a fault in a kernel or a call of ours. Close, Free,
// Unpin and Release never throw.

namespace tetrion::cuda {

// Extents of a grid or a block, and an index in it.
struct Dim3 {
  constexpr Dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
  constexpr std::size_t count() const { return std::size_t{x} * y * z; }
  unsigned x, y, z;
};

struct DeviceMemory {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// The bytes of a copy: `rows` times `width` bytes that begin a pitch apart, at either end its own.
struct CopyShape {
  std::size_t width = 0;
  std::size_t rows = 1;
  std::size_t to_pitch = 0, from_pitch = 0;  // of one row, any

  std::size_t bytes() const { return width * rows; }
  // From the first byte to the last.
  std::size_t to_bytes() const { return (rows - 1) * to_pitch + width; }
  std::size_t from_bytes() const { return (rows - 1) * from_pitch + width; }
};

// A kernel with its arguments. The simulator runs `body` once a thread, and knows the kernel by
// `function`; a device takes that and the addresses of the arguments, which are read before the
// launch returns.
struct KernelCall {
  const void* function = nullptr;
  void** arguments = nullptr;
  std::function<void()> body;
  Dim3 grid, block;
  std::size_t shared_bytes = 0;
  CodeLocation where;
};

namespace backend {

// What stands behind a handle is the backend's.
struct StreamState;
struct EventState;
struct GraphState;
struct PinnedState;

// 0 without a device or a driver; throws where a driver cannot be asked, say an old one.
int DeviceCount();
std::string DeviceName(int ordinal);
DeviceMemory MemoryOf(int ordinal);

// Null when the device has too little memory. Free waits for all work that may use the memory.
void* AllocateDevice(int ordinal, std::size_t bytes);
void FreeDevice(void* data);
void* AllocatePinned(std::size_t bytes);
void FreePinned(void* data);
// Null when the system pins no more. Unpinning waits for no copy.
PinnedState* PinMemory(int ordinal, void* data, std::size_t bytes);
void UnpinMemory(PinnedState* range);
MemoryKind KindOf(const void* data);

StreamState* OpenStream(int ordinal, const std::string& name);
void CloseStream(StreamState* stream);
void* NativeStream(StreamState* stream);  // null: there is none
bool StreamIdle(StreamState* stream);
void SynchronizeStream(StreamState* stream);

EventState* OpenEvent(int ordinal);
void CloseEvent(EventState* event);
void RecordEvent(EventState* event, StreamState* stream);
void WaitForEvent(StreamState* stream, EventState* event);
bool EventPassed(EventState* event);
void SynchronizeEvent(EventState* event);

void CopyBytes(void* to, const void* from, const CopyShape& shape, CopyDirection direction,
               MemoryKind host_kind, StreamState* stream);
void SetBytes(void* to, int value, std::size_t bytes, StreamState* stream);
void LaunchKernel(const KernelCall& call, StreamState* stream);

void BeginCapture(StreamState* stream);
GraphState* EndCapture(StreamState* stream);
void LaunchGraph(GraphState* graph, StreamState* stream);
void ReleaseGraph(GraphState* graph);

}  // namespace backend
}  // namespace tetrion::cuda
