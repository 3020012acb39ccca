#include "lib/cuda/device.h"

#include <string>

#include "lib/core/error.h"

namespace tetrion::cuda {
namespace {

template <typename Allocate>
void* NewMemory(std::size_t bytes, const Allocate& allocate) {
  if (bytes == 0) return nullptr;
  Capture::RefuseInThread("memory is allocated");
  return allocate();
}

// `free` says what of which memory is free: asked for where there is too little alone.
template <typename Free>
void* Allocated(void* data, std::size_t bytes, const char* what, const Free& free) {
  if (data != nullptr || bytes == 0) return data;
  throw Error(ExitCode::kTryAgain, std::string(what) + " needs " + std::to_string(bytes) +
                                       " bytes of " + free() +
                                       "; ask for less, or free what others hold");
}

// What CUDA's copies of rows take (cudaDeviceProp::memPitch of every device).
constexpr std::size_t kMostPitchBytes = (std::size_t{1} << 31) - 1;

void CheckPitches(const CopyShape& shape) {
  for (const std::size_t pitch : {shape.to_pitch, shape.from_pitch}) {
    if (pitch >= shape.width && pitch <= kMostPitchBytes) continue;
    throw Error(ExitCode::kInternal, "a copy of rows of " + std::to_string(shape.width) +
                                         " bytes has a pitch of " + std::to_string(pitch));
  }
}

void Copy(void* to, const void* from, const CopyShape& shape, CopyDirection direction,
          MemoryKind kind, CopyPurpose purpose, Stream& stream) {
  if (shape.bytes() == 0) return;
  if (kind == MemoryKind::kPageable) stream.CheckNotCapturing("pageable memory is copied");
  backend::CopyBytes(to, from, shape, direction, kind, stream.state());
  Activity activity;
  activity.Of(direction, kind, purpose) = {1, shape.bytes()};
  stream.Count(activity);
}

MemoryKind HostKind(const void* host) {
  const MemoryKind kind = backend::KindOf(host);
  if (kind == MemoryKind::kDevice) {
    throw Error(ExitCode::kInternal, "a copy names device memory as its host end");
  }
  return kind;
}

}  // namespace

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes, const char* what)
    : data_(Allocated(
          NewMemory(bytes, [&] { return backend::AllocateDevice(device.ordinal(), bytes); }), bytes,
          what,
          [&] {
            return "memory of device " + std::to_string(device.ordinal()) + " (" + device.name() +
                   "), of which " + std::to_string(device.Memory().free_bytes) + " are free";
          })),
      bytes_(bytes) {}

PinnedBuffer::PinnedBuffer(std::size_t bytes, const char* what)
    : data_(Allocated(NewMemory(bytes, [&] { return backend::AllocatePinned(bytes); }), bytes, what,
                      [] { return "pinned host memory, which there are not"; })),
      bytes_(bytes) {}

PinnedRange::PinnedRange(const Device& device, void* data, std::size_t bytes, const char* what)
    : bytes_(bytes) {
  Capture::RefuseInThread("memory is pinned");
  if (bytes == 0) throw Error(ExitCode::kInternal, std::string(what) + " has no bytes to pin");
  state_.reset(backend::PinMemory(device.ordinal(), data, bytes));
  if (state_) return;
  throw Error(ExitCode::kTryAgain, std::string(what) + ": the system does not pin " +
                                       std::to_string(bytes) +
                                       " bytes more; ask for less, or free what others hold");
}

void CopyToDevice(void* to, const void* host, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream) {
  Copy(to, host, {bytes}, CopyDirection::kHostToDevice, HostKind(host), purpose, stream);
}

void CopyToHost(void* host, const void* from, std::size_t bytes, CopyPurpose purpose,
                Stream& stream) {
  Copy(host, from, {bytes}, CopyDirection::kDeviceToHost, HostKind(host), purpose, stream);
}

void CopyOnDevice(void* to, const void* from, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream) {
  Copy(to, from, {bytes}, CopyDirection::kOnDevice, MemoryKind::kDevice, purpose, stream);
}

void CopyRowsToDevice(void* to, std::size_t to_pitch, const void* host, std::size_t host_pitch,
                      std::size_t width, std::size_t rows, CopyPurpose purpose, Stream& stream) {
  const CopyShape shape = {width, rows, to_pitch, host_pitch};
  CheckPitches(shape);
  Copy(to, host, shape, CopyDirection::kHostToDevice, HostKind(host), purpose, stream);
}

void SetBytes(void* to, int value, std::size_t bytes, Stream& stream) {
  if (bytes != 0) backend::SetBytes(to, value, bytes, stream.state());
}

}  // namespace tetrion::cuda
