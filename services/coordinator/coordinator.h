#pragma once

#include <exception>
#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/mutex.h"
#include "lib/http/http_endpoint.h"
#include "lib/metrics/registry.h"
#include "lib/run/run_folder.h"
#include "lib/run/signals.h"
#include "services/coordinator/control_agent.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/endpoints.h"
#include "services/coordinator/options.h"
#include "services/coordinator/run_files.h"
#include "services/coordinator/store.h"
#include "services/coordinator/store_agent.h"

namespace tetrion::coordinator {

// A run as the options ask for it: new, or resumed with its own configuration and the settings of
// learning that are given otherwise; those are recorded (RunFolder::RecordChanges) and logged.
struct OpenedRun {
  RunFolder folder;
  RunConfig config;
  bool is_new = false;
};
// Throws Error: kUsage (the run exists; no such run), kTryAgain (the folder cannot be written; a
// new one is removed again), kUsage (a setting that a resumed run keeps: both values).
OpenedRun OpenRun(const CoordinatorOptions& options);

// The address for members: the one that was asked for; without one a socket in the run folder, or
// in the folder of the shared regions where that path is too long for a socket (107 bytes). Both
// are open to this user only.
std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id);

// Whether the coordinator may be sent members, and if not, why. The first reason that holds is
// told.
struct ReadyInput {
  std::string store_pause;        // why the store cannot be written; empty: it can
  std::string files_problem;      // what of the run folder cannot be written; empty: nothing
  std::int64_t cycle_age_ns = 0;  // since the control agent finished a cycle
  bool draining = false;
};
Readiness ReadinessOf(const ReadyInput& input);

// The coordinator's composition root: store agent, control agent and HTTP endpoint over one run
// folder, which it holds alone (flock). Its own thread, main's, does what touches files: RunFiles,
// a look at the learner's region, a look at the process's memory.
class Coordinator {
 public:
  // Everything that can fail for the user's reasons fails here, before any thread starts.
  Coordinator(const CoordinatorOptions& options, OpenedRun run);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Blocks until the run has drained, because of a signal or --stop-after. Throws what an agent
  // threw.
  void Run(const SignalWatcher& signals);
  const std::string& endpoint() const { return control_->endpoint(); }
  const std::string& http_address() const { return http_->address(); }

 private:
  void WaitUntilFinished(const SignalWatcher& signals);
  void WatchMemory();
  void Fail(std::exception_ptr error) TETRION_EXCLUDES(error_mu_);
  void RethrowFailure() TETRION_EXCLUDES(error_mu_);
  Readiness CheckReady() const;

  Mutex error_mu_;
  std::exception_ptr error_ TETRION_GUARDED_BY(error_mu_);
  const RunFolder folder_;
  const int lock_fd_;
  Store store_;
  MetricsRegistry registry_;
  StoreAgent store_agent_;
  std::unique_ptr<ControlMetrics> metrics_;
  std::unique_ptr<ControlAgent> control_;
  std::unique_ptr<HttpEndpoint> http_;
  std::unique_ptr<RunFiles> files_;
  AgentRunner store_runner_;
  std::unique_ptr<AgentRunner> control_runner_;
  HotCounter* rebinds_ = nullptr;
  std::int64_t next_rebind_ns_ = 0;
  std::string learner_region_;  // path
};

// Opens the run and builds its coordinator. A new run that cannot start (its port is taken, say)
// leaves no folder behind, so that the same command can be given again.
std::unique_ptr<Coordinator> MakeCoordinator(const CoordinatorOptions& options, OpenedRun run);

}  // namespace tetrion::coordinator
