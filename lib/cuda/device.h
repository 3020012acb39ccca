#pragma once

#include <cstddef>
#include <memory>

#include "lib/cuda/stream.h"

// All that the rest of the project knows of CUDA's runtime, launch.h for kernels apart: devices,
// streams, events and graphs (stream.h), device and pinned memory, copies.
//
// Work is enqueued on a stream and done later, in the order of its stream; streams know no order
// between them but that of events. The caller keeps what the work reads and writes alive until the
// stream has passed it. Freeing memory may wait for the whole device, nothing else does, and there
// is no default stream.
//
// Thread roles: a stream is enqueued to by one thread at a time; everything else by any thread.
// Errors are tetrion::Error: kTryAgain when a device is missing, full or failing, kInternal for a
// fault in a kernel or a call.

namespace tetrion::cuda {

// Device memory, 256-byte aligned, contents undefined. Made and freed outside of steps only: both
// may wait for the device.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // Throws Error(kTryAgain) naming `what`, the bytes and what is free, when memory is short.
  DeviceBuffer(const Device& device, std::size_t bytes, const char* what);

  std::size_t bytes() const { return data_ ? bytes_ : 0; }
  // Device memory: to be passed to copies and kernels, never read by the host.
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<void, Releaser<backend::FreeDevice>> data_;
  std::size_t bytes_ = 0;
};

// Host memory that a device copies from and to by itself. 256-byte aligned, contents undefined.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(std::size_t bytes, const char* what);

  std::size_t bytes() const { return data_ ? bytes_ : 0; }
  template <typename T>
  T* data() const {
    return static_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<void, Releaser<backend::FreePinned>> data_;
  std::size_t bytes_ = 0;
};

// Pins host memory of the caller's, shared memory of another process too, so that a device copies
// from and to it by itself: then it is as a PinnedBuffer's. The memory outlives the range, overlaps
// no other pinned memory, not even within a page, and is not empty. Made and destroyed outside of
// steps only. Its owner waits for the streams of its copies before it destroys the range, which
// does not: a wait for the whole device is not allowed while any thread captures. A graph that was
// captured with the memory must not be launched afterwards. The simulator finds both.
class PinnedRange {
 public:
  PinnedRange() = default;
  // Throws Error(kTryAgain) naming `what` and the bytes when the system pins no more.
  PinnedRange(const Device& device, void* data, std::size_t bytes, const char* what);

  std::size_t bytes() const { return state_ ? bytes_ : 0; }

 private:
  std::unique_ptr<backend::PinnedState, Releaser<backend::UnpinMemory>> state_;
  std::size_t bytes_ = 0;
};

// Copies and fills, enqueued. Host memory should be a PinnedBuffer's, to be left alone until the
// stream has passed. Pageable memory works, is read before the call returns, and a copy to it
// blocks the host: the host-copy guard counts it apart.
void CopyToDevice(void* to, const void* host, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream);
void CopyToHost(void* host, const void* from, std::size_t bytes, CopyPurpose purpose,
                Stream& stream);
void CopyOnDevice(void* to, const void* from, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream);
// CopyToDevice for `rows` times `width` bytes that begin a pitch apart at either end: one copy of
// rows * width bytes. No pitch is below the width; what lies between the rows is left alone.
void CopyRowsToDevice(void* to, std::size_t to_pitch, const void* host, std::size_t host_pitch,
                      std::size_t width, std::size_t rows, CopyPurpose purpose, Stream& stream);
void SetBytes(void* to, int value, std::size_t bytes, Stream& stream);

}  // namespace tetrion::cuda
