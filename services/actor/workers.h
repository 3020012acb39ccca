#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/collect/worker_pool.h"
#include "lib/core/mutex.h"
#include "lib/metrics/figures.h"
#include "lib/metrics/registry.h"
#include "lib/wire/messages.h"
#include "services/actor/options.h"
#include "services/common/outbox.h"

namespace tetrion::actor {

// The actor's lane loops on their threads, each with its credits, its ring, and the weights of the
// learner; with streamed inference the loops have no policy: an EnvEnd each takes the learner's
// answers, and a thread runs several loops.
//
// Thread roles: the link thread builds, stops and asks for figures; the banner says what any thread
// may call. The loops answer through the outbox.
class Workers {
 public:
  // `options`, `outbox` and `metrics` must outlive the workers. `on_error`: see AgentRunner.
  Workers(const ActorOptions& options, Outbox& outbox, MetricsRegistry& metrics,
          std::function<void(std::exception_ptr)> on_error);
  ~Workers();

  // Lane loops, and so rings.
  int count() const { return options_.workers * Groups(); }
  // Once: makes every ring and starts the threads. Returns the rings (path, worker) and the queues,
  // one a loop, which live as long as this. Throws Error.
  void Build(const wire::Registered& registered, std::vector<wire::RingInfo>& rings,
             std::vector<CreditQueue*>& queues);
  // After the queues were drained: whether every lane has ended.
  bool Drained() const { return pool_.Drained(); }
  // Ends the threads. May be called twice.
  void Stop() { pool_.Stop(); }
  // After Stop: tells the learner that no more rows come.
  void CloseRings();
  void LogClosed() const;
  // What a heartbeat tells of them; 0 for the figures of others.
  FigureValues<kActorFigures> Figures() const;

  // --- any thread ---
  std::uint64_t EnvSteps() const;
  // Brings the scraped counters up to the workers' own.
  void RefreshMetrics() TETRION_EXCLUDES(refresh_mu_);

 private:
  struct Worker;
  struct Setting;

  bool Streamed() const { return options_.inference == "streamed"; }
  int Groups() const { return Streamed() ? options_.groups : 1; }
  std::unique_ptr<LaneLoop> MakeLocal(Worker& worker, const Setting& setting) const;
  std::unique_ptr<LaneLoop> MakeStreamed(Worker& worker, const Setting& setting) const;

  const ActorOptions& options_;
  Outbox& outbox_;
  MetricsRegistry& metrics_;
  HotGauge& version_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<Worker>> workers_;  // built once, on the link thread
  std::atomic<bool> built_{false};                // pairs Build with other threads
  Mutex refresh_mu_;                              // scrapes may overlap
};

}  // namespace tetrion::actor
