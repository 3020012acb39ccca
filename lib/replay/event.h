#pragma once

namespace tetrion {

// A point in an order of work that goes on by itself, such as a CUDA stream: passed once all work
// in front of it is done. The host's work is done when its call returns, so it needs no event:
// nullptr stands for a point that has passed.
//
// Owned by its recorder; outlives the gate that it was given to. May be recorded anew for later
// work of the same order: then the gate waits for the later point, which is never too early.
class Event {
 public:
  virtual ~Event() = default;
  // Any thread, never blocks.
  virtual bool Passed() const = 0;
  // Keeps the other end's later work behind the point: the reader's behind the event of a commit,
  // the writer's behind the event that ends a lease. Only enqueues that wait, never blocks. Called
  // by the other end's thread, under the gate's mutex.
  virtual void Fence() const = 0;
};

}  // namespace tetrion
