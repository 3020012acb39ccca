#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/collect/credit_queue.h"
#include "lib/collect/worker_pool.h"
#include "lib/core/agent.h"
#include "lib/core/mutex.h"
#include "lib/metrics/figures.h"
#include "lib/metrics/registry.h"
#include "lib/weights/remote_weights.h"
#include "lib/wire/messages.h"
#include "services/actor/courier.h"
#include "services/actor/options.h"
#include "services/common/outbox.h"

namespace tetrion::actor {

// The actor's lane loops on their threads, each with its credits, its ring, and the weights of the
// learner; with streamed inference the loops have no policy: an EnvEnd each takes the learner's
// answers, and a thread runs several loops. With --rows tcp the rings are this process's own memory
// and a courier carries them to the learner.
//
// Thread roles: the link thread builds, stops and asks for figures; the banner says what any thread
// may call. The loops answer through the outbox.
class Workers {
 public:
  // `options`, `outbox` and `metrics` must outlive the workers. `on_error`: see AgentRunner. Throws
  // Error(kUsage) when there are keys and they cannot be read.
  Workers(const ActorOptions& options, Outbox& outbox, MetricsRegistry& metrics,
          std::function<void(std::exception_ptr)> on_error);
  ~Workers();

  // Lane loops, and so rings.
  int count() const { return options_.workers * Groups(); }
  // Once: makes every ring and starts the threads. Returns the rings (path, worker) and the queues,
  // one a loop, which live as long as this. `process`: see wire::Identity. Throws Error.
  void Build(const wire::Registered& registered, std::uint64_t process,
             std::vector<wire::RingInfo>& rings, std::vector<CreditQueue*>& queues);
  // After the queues were drained: whether every lane has ended and, over the network, the learner
  // has every row. Ends the workers' threads and closes their rings on the way.
  bool Drained();
  // Ends the workers' threads and tells the learner that no more rows come. May be called twice.
  void Close();
  // After that: rows that the learner has not taken.
  std::uint64_t RowsLeft() const;
  // Where the learner takes rows from the network, and its key there.
  void LearnerIsAt(const std::string& rows_endpoint, const std::string& rows_key);
  // Ends every thread. May be called twice.
  void Stop();
  void LogClosed() const;
  // What a heartbeat tells of them; 0 for the figures of others.
  FigureValues<kActorFigures> Figures() const;

  // --- any thread ---
  std::uint64_t EnvSteps() const;
  // Why rows do not reach the learner, see Courier; empty: none is known.
  std::string Problem() const;
  // Brings the scraped counters up to the workers' own.
  void RefreshMetrics() TETRION_EXCLUDES(refresh_mu_);

 private:
  struct Worker;
  struct Setting;

  bool Streamed() const { return options_.Streamed(); }
  bool Remote() const { return options_.rows == "tcp"; }
  int Groups() const { return options_.GroupsOfWorker(); }
  void MakeCourier(const Setting& setting);
  std::unique_ptr<LaneLoop> MakeLoop(Worker& worker, const Setting& setting);
  void MakeLocal(Worker& worker, const Setting& setting) const;
  void MakeRemote(Worker& worker, const Setting& setting);
  std::unique_ptr<LaneLoop> MakeStreamed(Worker& worker, const Setting& setting) const;

  const ActorOptions& options_;
  Outbox& outbox_;
  MetricsRegistry& metrics_;
  HotGauge& version_;
  const std::function<void(std::exception_ptr)> on_error_;
  const wire::CurveKeys keys_;  // of the connection to the learner
  WeightsInbox inbox_;          // remote: filled by the courier
  WorkerPool pool_;
  std::vector<std::unique_ptr<Worker>> workers_;  // built once, on the link thread
  std::unique_ptr<Courier> courier_;              // remote; reads the workers' rings
  std::unique_ptr<AgentRunner> courier_runner_;
  std::atomic<bool> built_{false};  // pairs Build with other threads
  Mutex refresh_mu_;                // scrapes may overlap
};

}  // namespace tetrion::actor
