#pragma once

#include <atomic>
#include <memory>

#include "lib/core/agent.h"
#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/run/signals.h"
#include "lib/wire/rows_socket.h"
#include "services/common/service_host.h"
#include "services/learner/link_agent.h"
#include "services/learner/once_agent.h"
#include "services/learner/options.h"

namespace tetrion::learner {

class Engine;

// Composition root of the learner process.
//
//   actors' rings ─▶ IngestAgent ─▶ ReplayGate ─▶ ReplaySource ─▶ TrainerAgent ─▶ weights slots
//                      ▲       ▲                                       │                └▶ actors
//            RingBoard │       │ StreamBoard: answered rows            └▶ CheckpointAgent ─▶ disk
//   coordinator ⇄ LearnerLinkAgent   InferenceAgent ─▶ actions of streamed actors
class Learner {
 public:
  Learner(LearnerOptions options, SignalWatcher& signals);
  ~Learner();
  // Blocks until drained or failed. Rethrows the first Error of a thread.
  void Run();

 private:
  MemberConfig Membership();
  LearnerLinkAgent::Hooks LinkHooks();
  void StartBuild(const wire::Registered& registered);
  void Build();
  bool Built();
  void EndBuild();
  void FillHeartbeat(wire::Heartbeat& heartbeat);
  void RefreshMetrics();
  void StartStop();
  void StopEngine();
  bool Stopped();
  void EndStop();
  void DrainLanes();

  const LearnerOptions options_;
  const SignalWatcher& signals_;
  std::unique_ptr<wire::RowsServer> rows_;  // bound at once, then the engine's; null: none
  std::atomic<bool> drain_lanes_{false};    // the link drains; pairs with lanes' link and Build
  MetricsRegistry metrics_;
  LinkRecorders link_metrics_{metrics_, "coordinator"};
  ServiceHost host_;
  RingBoard board_;
  Versions versions_;
  std::unique_ptr<LearnerLinkAgent> link_;
  wire::Registered registered_;                 // the first; written before the build starts
  std::unique_ptr<Engine> engine_;              // built once, by build_; null when that failed
  std::atomic<Engine*> ready_engine_{nullptr};  // pairs Build with scrapes
  std::atomic<bool> abandoned_{false};          // the drain did not wait; pairs Run with Build
  OnceAgent build_{"build", [this] { Build(); }};
  OnceAgent stop_{"stop", [this] { StopEngine(); }};
  AgentRunner build_runner_, stop_runner_;
};

}  // namespace tetrion::learner
