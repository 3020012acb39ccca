#pragma once

#include <memory>
#include <string>

#include "lib/cuda/activity.h"
#include "lib/cuda/backend.h"

// Devices and the order of their work: streams, events, graphs. What the work does is in device.h
// and launch.h; the rules for all of them are in device.h.

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

  // The cudaStream_t, for libraries that enqueue work of their own (torch): that work is neither
  // counted nor seen by the guard. Null on the simulator, which has no stream to give: ask before
  // passing it on, as a null stream is CUDA's default one.
  void* native() const { return backend::NativeStream(state_.get()); }

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
// thread that captures, and no memory freed or unpinned by it: a device refuses that and voids the
// capture, the simulator finds it. Made, ended and destroyed by one thread, before its stream.
class Capture {
 public:
  explicit Capture(Stream& stream);
  ~Capture();  // without End, drops what was recorded
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  Graph End();

  // Throws Error while the calling thread captures.
  static void RefuseInThread(const char* what);

 private:
  backend::GraphState* Stop();
  Stream& stream_;
};

}  // namespace tetrion::cuda
