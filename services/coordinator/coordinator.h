#pragma once

#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/file.h"
#include "lib/metrics/registry.h"
#include "lib/run/run_folder.h"
#include "lib/run/signals.h"
#include "services/common/service_host.h"
#include "services/coordinator/control_agent.h"
#include "services/coordinator/control_metrics.h"
#include "services/coordinator/health.h"
#include "services/coordinator/open_run.h"
#include "services/coordinator/options.h"
#include "services/coordinator/run_files.h"
#include "services/coordinator/store.h"
#include "services/coordinator/store_agent.h"

namespace tetrion::coordinator {

// The coordinator's composition root: store agent, control agent and HTTP endpoint over one run
// folder, which it holds alone (flock). Its own thread, main's, does what touches files: RunFiles,
// a look at the learner's region, a look at the process's memory.
class Coordinator {
 public:
  // Everything that can fail for the user's reasons fails here, before any thread starts. The run
  // stays locked by the caller, who removes a new one on failure; then Hold takes the lock.
  Coordinator(const CoordinatorOptions& options, const OpenedRun& run);
  void Hold(FileDescriptor lock) { lock_ = std::move(lock); }
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Blocks until the run has drained, because of a signal or --stop-after. Throws what an agent
  // threw.
  void Run(const SignalWatcher& signals);
  const std::string& endpoint() const { return control_->endpoint(); }
  const std::string& http_address() const { return host_->http_address(); }

 private:
  // One look at signals, region, memory and files, 0.1 s after the one before.
  void Watch(const SignalWatcher& signals);
  Readiness CheckReady() const;
  void RemoveLearnerRegion();

  const RunFolder folder_;
  FileDescriptor lock_;
  Store store_;
  MetricsRegistry registry_;
  StoreAgent store_agent_;
  std::unique_ptr<ControlMetrics> metrics_;
  std::unique_ptr<ControlAgent> control_;
  std::unique_ptr<ServiceHost> host_;
  std::unique_ptr<RunFiles> files_;
  std::unique_ptr<MemoryWatch> memory_;
  AgentRunner store_runner_;
  std::string shm_dir_;
  std::uint64_t run_id_ = 0;
};

// Opens the run and builds its coordinator. A new run that cannot start (its port is taken, say)
// leaves no folder behind, so that the same command can be given again.
std::unique_ptr<Coordinator> MakeCoordinator(const CoordinatorOptions& options, OpenedRun run);

}  // namespace tetrion::coordinator
