#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/metrics/registry.h"
#include "lib/run/run_folder.h"
#include "services/coordinator/control_agent.h"

namespace tetrion::coordinator {

// Where others find the coordinator and the run's shared regions.
struct ToldPlaces {
  std::string control, http, shm_dir;
};

// Writes where the run's services listen: endpoints.json for members and tools, file_sd.json for
// Prometheus (file_sd_configs). Both by rename. One thread.
class EndpointsWriter {
 public:
  EndpointsWriter(const RunFolder& folder, std::uint64_t run_id, ToldPlaces told);
  // Throws Error(kTryAgain) when the run folder cannot be written.
  void Write(const std::vector<Member>& members) const;
  // The run has ended: nothing is left to scrape, and another program may get the ports. Throws as
  // Write; endpoints.json stays, for the coordinator that goes on with the run.
  void ClearTargets() const;

 private:
  const RunFolder folder_;
  const std::uint64_t run_id_;
  const ToldPlaces told_;
};

// A service that Prometheus scrapes. `job`: coordinator, learner or actor, whatever it is called.
struct ScrapeTarget {
  std::string service, job, address;
};
// The text of file_sd.json: one target group a service, labels service, job and run.
std::string FileSdText(const std::string& run, const std::vector<ScrapeTarget>& targets);

// What an earlier coordinator of the run told: a new one binds its port again, so that members need
// not look for it, and clears the folder of shared regions that the run leaves. All fields empty
// where there is no such file.
Endpoints PreviousEndpoints(const RunFolder& folder);

// The address for members: the one that was asked for; without one a socket in the run folder, or
// in the folder of the shared regions where that path is too long for a socket (107 bytes). Both
// are open to this user only.
std::string ControlAddress(const std::string& bind, const RunFolder& folder,
                           const std::string& shm_dir, std::uint64_t run_id);

// What endpoints.json says of the bound `endpoint` of the control channel: a socket's path as it
// is, else what Advertised (lib/core/address.h) makes of it. Throws Error(kUsage) also for a
// `wanted` beside a socket's path.
std::string ToldEndpoint(const std::string& wanted, const std::string& endpoint);

// The files that a run's coordinator keeps for members and people: endpoints.json and file_sd.json
// when members change (at most once a second), a line of metrics.jsonl every 5 s; at the end
// summary.json, and a file_sd.json without targets. What cannot be written (full disk, no
// descriptors) is counted and shown by Problem until it can: the first two are tried again each
// second, metrics.jsonl with its next line. It never ends the run. Main thread, Problem any thread.
class RunFiles {
 public:
  // References outlive the object.
  RunFiles(const RunFolder& folder, std::uint64_t run_id, const ToldPlaces& told,
           const ControlAgent& control, MetricsRegistry& registry, const Clock& clock);

  // Some times a second.
  void Tick();
  // The last line, the summary, and no targets any more; one attempt.
  void Finish();
  // Which files cannot be written and why, for readiness; empty: all can.
  std::string Problem() const TETRION_EXCLUDES(mu_);

 private:
  void WriteEndpointFiles();
  // Why it could not; empty: it could.
  std::string AppendLine() const;
  enum class File { kEndpoints = 0, kMetrics = 1 };  // file_sd.json is written with endpoints.json
  static constexpr std::size_t kFiles = 2;
  // How an attempt to write the file ended; empty: well.
  void Report(File file, const std::string& problem) TETRION_EXCLUDES(mu_);

  const RunFolder folder_;
  const ControlAgent& control_;
  const Clock& clock_;
  const EndpointsWriter endpoints_;
  const std::array<HotCounter*, kFiles> errors_;  // by File
  bool endpoints_written_ = false;
  std::uint64_t members_written_ = 0;  // revision
  std::int64_t next_endpoints_ns_ = 0, next_line_ns_;
  mutable Mutex mu_;
  std::array<std::string, kFiles> problems_ TETRION_GUARDED_BY(mu_);  // by File; empty: none
};

}  // namespace tetrion::coordinator
