#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "lib/cuda/activity.h"
#include "lib/cuda/backend.h"

// All that the rest of the project knows of CUDA's runtime, launch.h for kernels apart.
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

template <auto kRelease>
struct Releaser {
  template <typename T>
  void operator()(T* handle) const {
    kRelease(handle);
  }
};

class Device {
 public:
  static int Count();
  explicit Device(int ordinal);

  int ordinal() const { return ordinal_; }
  const std::string& name() const { return name_; }
  DeviceMemory Memory() const { return backend::MemoryOf(ordinal_); }

 private:
  int ordinal_;
  std::string name_;
};

// A point in a stream's work. Before its first record it counts as passed, as on a device: a wait
// for it waits for nothing, so publish an event only after it has been recorded.
class Event {
 public:
  explicit Event(const Device& device);
  bool Passed() const;  // never blocks
  void Synchronize();   // blocks the host until the last record has passed

 private:
  friend class Stream;
  std::unique_ptr<backend::EventState, Releaser<backend::CloseEvent>> state_;
};

// Work recorded once and launched many times. Pointers and arguments are frozen at the recording.
class Graph {
 private:
  friend class Stream;
  friend class Capture;
  Graph(backend::GraphState* state, const Activity& activity)
      : state_(state), activity_(activity) {}

  std::unique_ptr<backend::GraphState, Releaser<backend::ReleaseGraph>> state_;
  Activity activity_;  // of one launch
};

class Stream {
 public:
  // The name is for the simulator's messages.
  Stream(const Device& device, const std::string& name);

  void Record(Event& event);      // the event's point is behind all work enqueued so far
  void Wait(const Event& event);  // later work of this stream waits for the event's last record
  bool Idle() const;              // never blocks
  void Synchronize();             // blocks the host until all work enqueued so far is done

  void Launch(const Graph& graph);

  // For this folder: an operation that was accepted is counted; one in a capture is refused.
  backend::StreamState* state() const { return state_.get(); }
  void Count(const Activity& activity);
  void CheckNotCapturing(const char* what) const;

 private:
  friend class Capture;
  std::unique_ptr<backend::StreamState, Releaser<backend::CloseStream>> state_;
  std::unique_ptr<Activity> captured_;  // null outside of a capture
};

// While it lives, until End, work of its stream is recorded instead of done. Refused meanwhile:
// events and waits of that stream; queries of and waits for any event, and new memory, by the
// thread that captures. Made, ended and destroyed by one thread, before its stream.
class Capture {
 public:
  explicit Capture(Stream& stream);
  ~Capture();  // without End, drops what was recorded
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Graph End();

 private:
  backend::GraphState* Stop();
  Stream& stream_;
};

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

// Copies and fills, enqueued. Host memory should be a PinnedBuffer's, to be left alone until the
// stream has passed. Pageable memory works, is read before the call returns, and a copy to it
// blocks the host: the host-copy guard counts it apart.
void CopyToDevice(void* to, const void* host, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream);
void CopyToHost(void* host, const void* from, std::size_t bytes, CopyPurpose purpose,
                Stream& stream);
void CopyOnDevice(void* to, const void* from, std::size_t bytes, CopyPurpose purpose,
                  Stream& stream);
void SetBytes(void* to, int value, std::size_t bytes, Stream& stream);

}  // namespace tetrion::cuda
