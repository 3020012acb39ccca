#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/cuda/device.h"
#include "lib/replay/event.h"

namespace tetrion {

// Points of one stream that fence another: what the gate is given for work on a device.
//
// Thread roles: Record by the thread that enqueues to `of`; Passed by any; Fence by the thread that
// enqueues to `fenced`. The streams outlive the events.
class StreamEvents {
 public:
  // A recorder with at most `points` on their way sees each of them; an older one stands for a
  // later point.
  StreamEvents(const cuda::Device& device, cuda::Stream& of, cuda::Stream& fenced,
               std::size_t points)
      : of_(of) {
    for (std::size_t i = 0; i < points; ++i) {
      events_.push_back(std::make_unique<Point>(device, fenced));
    }
  }

  // The point behind all work enqueued so far, recorded.
  const Event* Record() {
    Point& point = *events_[next_++ % events_.size()];
    of_.Record(point.event);
    return &point;
  }

 private:
  struct Point final : Event {
    Point(const cuda::Device& device, cuda::Stream& stream) : event(device), fenced(stream) {}
    bool Passed() const override { return event.Passed(); }
    void Fence() const override { fenced.Wait(event); }
    cuda::Event event;
    cuda::Stream& fenced;
  };

  cuda::Stream& of_;
  std::vector<std::unique_ptr<Point>> events_;
  std::size_t next_ = 0;
};

}  // namespace tetrion
