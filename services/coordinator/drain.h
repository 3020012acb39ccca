#pragma once

#include <atomic>
#include <cstdint>

#include "services/coordinator/control_context.h"

namespace tetrion::coordinator {

// The end of a run: members are told, and it is over when their sessions are gone and everything
// is stored, or when its time is. Control agent only, but for Request.
class Drain {
 public:
  explicit Drain(ControlContext& context);

  // Any thread. The run also drains by itself, at --stop-after.
  void Request() { requested_.store(true, std::memory_order_release); }
  // Every cycle until it returns true: the run is over.
  bool Step();

 private:
  ControlContext& context_;
  RunBook& book_;
  StoreAgent& store_;
  const Clock& clock_;
  const ControlConfig& config_;
  std::int64_t deadline_ns_ = 0;
  std::atomic<bool> requested_{false};  // pairs with the load in Step
};

}  // namespace tetrion::coordinator
