#pragma once

#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/metrics/registry.h"
#include "lib/run/run_folder.h"
#include "services/coordinator/control_agent.h"
#include "services/coordinator/endpoints.h"

namespace tetrion::coordinator {

// The files that a run's coordinator keeps for members and people: endpoints.json and file_sd.json
// when members change (at most once a second), a line of metrics.jsonl every 5 s, summary.json at
// the end. A file that cannot be written (full disk, no descriptors) is tried again each second,
// counted, and shown by Problem; it never ends the run. Main thread, Problem any thread.
class RunFiles {
 public:
  // References outlive the object.
  RunFiles(const RunFolder& folder, const std::string& http_address, const ControlAgent& control,
           MetricsRegistry& registry, const Clock& clock);

  // Some times a second.
  void Tick();
  // The last line and the summary; one attempt.
  void Finish();
  // What cannot be written, for readiness; empty: nothing.
  std::string Problem() const TETRION_EXCLUDES(mu_);

 private:
  void WriteEndpointFiles();
  bool AppendLine();
  void Report(const std::string& problem) TETRION_EXCLUDES(mu_);

  const RunFolder folder_;
  const ControlAgent& control_;
  const Clock& clock_;
  const EndpointsWriter endpoints_;
  HotCounter &endpoint_errors_, &line_errors_;
  bool endpoints_written_ = false;
  std::uint64_t members_written_ = 0;  // revision
  std::int64_t next_endpoints_ns_ = 0, next_line_ns_;
  mutable Mutex mu_;
  std::string problem_ TETRION_GUARDED_BY(mu_);
};

}  // namespace tetrion::coordinator
