#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/core/agent.h"
#include "lib/metrics/figures.h"
#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "services/common/outbox.h"
#include "services/common/play_link.h"
#include "services/learner/resident_agent.h"

namespace tetrion::learner {

// The lanes that a learner plays itself: their thread, and their own session with the coordinator,
// in which they are an actor without rings. Tokens, reports, fences and drains are those of any
// actor, so that the account knows no other case.
//
// Thread roles: the owner constructs, starts and stops; the banner says what any thread may call.
class ResidentLanes {
 public:
  struct Config {
    MemberConfig member;  // of the session
    int groups = 1;       // workers of the account: N / M
    ResidentAgent::Config agent;
  };
  // References outlive the object; `drain`: a signal has asked for the end.
  ResidentLanes(const Config& config, ResidentAgent::Parts parts, ReplayGate& gate,
                DeviceRows& rows, cuda::Stream& stream, MetricsRegistry& metrics,
                const std::atomic<bool>& drain,
                const std::function<void(std::exception_ptr)>& on_error);

  void Start(MetricsRegistry& metrics);
  // Ends both threads. May be called twice.
  void Stop();
  // After Stop: what came of them.
  void LogDrained() const;

  // --- any thread ---
  // Every episode is reported or given back, and the session has said goodbye.
  // Also when the session's thread has ended by an error.
  bool Done() const { return link_.Done() || !link_runner_.Running(); }
  const ResidentCounters& counters() const { return agent_.counters(); }
  void RefreshMetrics();

 private:
  PlayLink::Hooks LinkHooks();
  std::vector<wire::Stat> Stats();
  FigureValues<kActorFigures> Figures() const;

  Outbox outbox_;
  std::deque<CreditQueue> credits_;  // one a group
  ResidentAgent agent_;
  LinkRecorders link_metrics_;
  PlayLink link_;
  AgentRunner agent_runner_, link_runner_;
  HotCounter &rows_, &env_steps_, &wait_token_, &wait_weights_, &wait_replay_;
};

}  // namespace tetrion::learner
