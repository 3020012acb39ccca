#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/collect/ring_sink.h"
#include "lib/collect/worker_pool.h"
#include "lib/core/mutex.h"
#include "lib/http/http_endpoint.h"
#include "lib/metrics/link_recorders.h"
#include "lib/metrics/registry.h"
#include "lib/run/signals.h"
#include "lib/weights/weights_reader.h"
#include "services/actor/link_agent.h"
#include "services/actor/options.h"
#include "services/actor/outbox.h"

namespace tetrion::actor {

// Composition root of the actor process: one link agent, N workers, one HTTP endpoint.
//
//   coordinator ⇄ LinkAgent ──credits──▶ CreditQueue ─▶ worker (LaneLoop) ─▶ RingSink ─▶ learner
//                      ◀────reports──── Outbox ◀────────────┘      ▲ WeightsReader ◀──── learner
//
// With streamed inference the loops have no policy: a EnvEnd each takes the learner's answers.
class Actor {
 public:
  Actor(ActorOptions options, SignalWatcher& signals);
  ~Actor();
  // Blocks until drained or failed. Rethrows the first Error of a thread.
  void Run();

 private:
  struct Worker;
  struct Setting;

  LinkAgent::Config LinkConfig() const;
  LinkAgent::Hooks LinkHooks();
  // Lane loops: several to a thread with streamed inference.
  bool Streamed() const { return options_.inference == "streamed"; }
  int Groups() const { return Streamed() ? options_.groups : 1; }
  void Build(const wire::Registered& registered, std::vector<wire::RingInfo>& rings,
             std::vector<CreditQueue*>& queues);
  std::unique_ptr<LaneLoop> MakeLocal(Worker& worker, const Setting& setting);
  std::unique_ptr<LaneLoop> MakeStreamed(Worker& worker, const Setting& setting);
  std::vector<wire::Stat> Stats();
  std::uint64_t EnvSteps() const;
  void RefreshMetrics();
  void Fail(std::exception_ptr error);
  Readiness Ready() const;

  const ActorOptions options_;
  SignalWatcher& signals_;
  MetricsRegistry metrics_;
  LinkRecorders link_metrics_{metrics_, "coordinator"};
  Outbox outbox_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<Worker>> workers_;  // built once, on the link thread
  std::atomic<bool> built_{false};  // pairs the link thread's Build with other readers
  std::unique_ptr<LinkAgent> link_;
  std::unique_ptr<HttpEndpoint> http_;

  Mutex mu_;
  std::exception_ptr error_ TETRION_GUARDED_BY(mu_);
  Mutex refresh_mu_;  // scrapes may overlap
};

}  // namespace tetrion::actor
