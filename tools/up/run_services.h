#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/run/run_folder.h"
#include "tools/up/child_processes.h"
#include "tools/up/run_status.h"
#include "tools/up/supervisor.h"
#include "tools/up/up_options.h"

namespace tetrion {

inline constexpr std::uint64_t kNoRun = 0;
// Of the run whose folder it is; kNoRun where it has none yet.
std::uint64_t RunIdIn(const RunFolder& folder);

// The services of one run as children of this process, and what their coordinator says of the run.
// One thread, which must be the main one and have been the first: children drain when it dies. Only
// EndAtOnce may be called by any thread.
class RunServices {
 public:
  // Asks the coordinator no more often than each `poll_period_ns`.
  RunServices(const UpOptions& options, const RunPlan& plan, std::int64_t poll_period_ns);

  Supervisor& supervisor() { return supervisor_; }
  const RunFolder& folder() const { return folder_; }
  const std::string& shm_dir() const { return shm_dir_; }

  // The newest status, nullopt before there is one. Asks for another when it is time, which may
  // take half a second.
  const std::optional<RunStatus>& Poll();
  // Tells on stderr which child failed, with its last lines.
  void ReportFailure() const;
  // Removes what killed services left in shared memory, of this run and of others. Regions that a
  // process holds (an actor started by hand) stay, and the rings of the run `to_resume`, which its
  // learner empties.
  void ReapSharedMemory(std::uint64_t to_resume) const;
  // Kills what lives, and reaps.
  void EndAtOnce();

 private:
  const RunFolder folder_;
  const std::string shm_dir_;
  const std::int64_t poll_period_ns_;
  ChildProcesses processes_;
  Supervisor supervisor_;
  std::optional<RunStatus> status_;  // the newest seen
  std::int64_t next_poll_ns_ = 0;
};

}  // namespace tetrion
