#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

#include "lib/cuda/sim/sanitizers.h"

namespace tetrion::cuda::sim {

// A stack of its own on which work can stop halfway. The only user of Boost.Context.
//
// Thread roles: one thread at a time drives it, not always the same one. A fiber lives as long as
// the process and waits for more work when it is done: so every switch is one of the two below, and
// the sanitizers, which Debian's Boost was not built for, are told of each.
class Fiber {
 public:
  Fiber();
  ~Fiber() = delete;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called outside of the fiber: begins `work`, which throws nothing, and returns when it has ended
  // or suspends itself.
  void Begin(std::function<void()> work);
  void Resume();
  // Called inside of `work`, never while an exception is being handled.
  void Suspend();

  bool idle() const { return idle_; }
  // Whether the address lies in what faults below the stack: the work went too deep.
  bool EndsAt(const void* address) const;

 private:
  std::function<void()> work_;
  bool idle_ = true;
  std::byte* bottom_ = nullptr;
  boost::context::fiber inside_, outside_;  // where each side goes on
  SanitizedStack inside_stack_, outside_stack_;
};

// Fibers for reuse: a new stack costs system calls, a switch does not.
class FiberPool {
 public:
  Fiber& Take();
  void Give(Fiber& fiber) { idle_.push_back(&fiber); }

 private:
  std::vector<Fiber*> idle_;
};

}  // namespace tetrion::cuda::sim
