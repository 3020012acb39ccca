#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/run/signals.h"
#include "services/actor/options.h"
#include "services/actor/workers.h"
#include "services/common/outbox.h"
#include "services/common/play_link.h"
#include "services/common/service_host.h"

namespace tetrion::actor {

// Composition root of the actor process: one link agent, N workers, one HTTP endpoint; with
// --rows tcp a courier, which takes the rows from the rings and brings the weights.
//
//   coordinator ⇄ PlayLink ──credits──▶ CreditQueue ─▶ worker (LaneLoop) ─▶ RingSink ─▶ learner
//                      ◀────reports──── Outbox ◀────────────┘      ▲ WeightsReader ◀──── learner
class Actor {
 public:
  Actor(ActorOptions options, SignalWatcher& signals);
  // Blocks until drained or failed. Rethrows the first Error of a thread.
  void Run();

 private:
  PlayLink::Hooks LinkHooks();
  std::vector<wire::Stat> Stats();
  std::string Problem() const;

  const ActorOptions options_;
  MetricsRegistry metrics_;
  LinkRecorders link_metrics_{metrics_, "coordinator"};
  ServiceHost host_;
  Outbox outbox_;
  Workers workers_;
  std::unique_ptr<PlayLink> link_;
};

}  // namespace tetrion::actor
