#include "services/coordinator/drain.h"

#include "lib/core/log.h"

namespace tetrion::coordinator {

Drain::Drain(ControlContext& context)
    : context_(context),
      book_(context.book),
      store_(context.store),
      clock_(context.clock),
      config_(context.config) {}

bool Drain::Step() {
  if (!context_.draining()) {
    const bool asked = requested_.load(std::memory_order_acquire);
    if (!asked && !book_.state.StopReached()) return false;
    log::info("draining: {}", asked ? "asked to stop" : "--stop-after is reached");
    context_.StartDrain();
    deadline_ns_ = clock_.NowNs() + config_.drain_timeout_ms * kNanosPerMilli;
    for (const auto& [number, session] : book_.sessions.sessions()) {
      if (!session.peer.empty()) context_.Send(session.peer, context_.AckFor(session));
    }
  }
  // Rings left without any session stay so: their learner is gone, and none is let in any more. The
  // learner of the resumed run will drain them.
  const bool gone = book_.sessions.sessions().empty();
  const bool late = clock_.NowNs() >= deadline_ns_;
  if (gone && context_.replies().empty() && store_.committed() == store_.pushed()) {
    log::info("drained; {} rings wait for the next learner", book_.slots.Rings().size());
  } else if (late) {
    log::warn("drain time-out: {} sessions and {} rings are left", book_.sessions.sessions().size(),
              book_.slots.Rings().size());
  } else {
    return false;
  }
  return true;
}

}  // namespace tetrion::coordinator
