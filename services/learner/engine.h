#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/mutex.h"
#include "lib/metrics/registry.h"
#include "lib/replay/gate.h"
#include "lib/rl/trainer.h"
#include "lib/run/run_config.h"
#include "lib/weights/learner_region.h"
#include "lib/wire/messages.h"
#include "services/learner/boards.h"
#include "services/learner/checkpoint_agent.h"
#include "services/learner/first_state.h"
#include "services/learner/inference_agent.h"
#include "services/learner/ingest_agent.h"
#include "services/learner/learner_metrics.h"
#include "services/learner/options.h"
#include "services/learner/rate_meter.h"
#include "services/learner/replay_memory.h"
#include "services/learner/replay_source.h"
#include "services/learner/resident_agent.h"
#include "services/learner/resident_lanes.h"
#include "services/learner/ring_attacher.h"
#include "services/learner/rows_agent.h"
#include "services/learner/rows_metrics.h"
#include "services/learner/trainer_agent.h"
#include "services/learner/versions.h"

namespace tetrion::learner {

// Everything of a learner that exists once the run's settings are known: region, replay, trainer,
// and the threads that ingest, decide, train and write checkpoints.
//
// Thread roles: the build thread constructs and starts; the link thread fills heartbeats; the stop
// thread, or main's when no drain came to that, stops; the banner says what any thread may call.
class Engine {
 public:
  // What outlives the engine.
  struct Surroundings {
    const LearnerOptions& options;
    MetricsRegistry& metrics;
    RingBoard& board;
    Versions& versions;
    const std::atomic<bool>& drain_lanes;  // the learner drains: its resident lanes are to end
    std::function<double()> mean_return;   // for checkpoints; any thread
    std::function<void(std::exception_ptr)> on_error;
  };
  // May wait for the folders' locks; allocates the replay, reads the checkpoint. `rows` is null
  // when no remote actors are served. Throws Error.
  Engine(const Surroundings& around, const wire::Registered& registered,
         std::unique_ptr<wire::RowsServer> rows);

  void Start();
  // A drain has begun: ingest waits for the trainer no more where that leaves no row untrained that
  // should be. Any thread; may be called twice.
  void LetIngestRun();
  // Rings have ended: stops the threads, keeps what was learnt. May be called twice. Throws Error
  // when the last checkpoint cannot be written.
  void Stop();
  void OnBuilt(double seconds) { metrics_.OnBuilt(seconds); }
  void FillHeartbeat(wire::Heartbeat& heartbeat);
  // After Stop: the region goes with the run.
  void UnlinkRegion() { region_.region().Unlink(); }
  void LogDrained() const;

  // --- any thread ---
  // Lanes that the learner plays itself have none left to report, or there are none.
  bool ResidentDone() const { return !resident_ || resident_->Done(); }
  // Rows that are trained once and have not been make a whole batch.
  bool BatchWaits() const;
  // Brings the scraped figures up to the agents' own.
  void RefreshMetrics() TETRION_EXCLUDES(refresh_mu_);

 private:
  CheckpointInfo Describe() const;
  void MakeResident();
  void MakeRows(const wire::Registered& registered, std::unique_ptr<wire::RowsServer> socket);
  PlayedRows Played() const;
  std::uint64_t Rows() const;  // that came into the replay
  double WindowRows() const;

  const Surroundings around_;
  const std::string run_name_;
  const RunConfig run_;
  const std::string checkpoint_folder_;
  const ReplayShape shape_;
  ReplayMemory memory_;
  const std::unique_ptr<Trainer> trainer_;
  // Before region and checkpoints are taken, for they may be refused; MakeResident uses them up.
  ResidentAgent::Parts resident_parts_;
  // Before the checkpoint is read: while this learner's predecessor lives, it may write another.
  LearnerRegion region_;
  CheckpointAgent checkpoints_;
  const FirstState resumed_;
  ReplayGate replay_;
  ReplaySource source_;
  LearnerMetrics metrics_;
  StreamBoard streams_;
  RemoteBoard remote_;
  RingAttacher rings_;
  IngestAgent ingest_;
  InferenceAgent inference_;
  TrainerAgent training_;
  std::unique_ptr<ResidentLanes> resident_;    // null unless the learner plays lanes itself
  std::unique_ptr<RowsAgent> rows_;            // null unless remote actors are served
  std::unique_ptr<RowsMetrics> rows_metrics_;  // with rows_
  AgentRunner checkpoint_runner_, ingest_runner_, inference_runner_, trainer_runner_;
  std::unique_ptr<AgentRunner> rows_runner_;  // with rows_
  RateMeter update_rate_;
  bool stopped_ = false;
  Mutex refresh_mu_;  // scrapes may overlap
};

}  // namespace tetrion::learner
