#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/setup/device_choice.h"
#include "lib/setup/inference_choice.h"
#include "lib/setup/run_choice.h"
#include "tools/up/supervisor.h"

namespace tetrion {

struct UpOptions : RunChoice, InferenceChoice {
  int actors = 1;
  int workers = 0;  // per actor; 0: what cores and the learner's threads allow
  // The learner's; 0: its own default; nullopt: to be measured (core_choice.h), else as 0.
  std::optional<int> threads = 0;
  DeviceChoice replay;  // with resident lanes there are no actors
  std::string bin_dir;  // folder of the services' programs; empty: this program's
  std::string config_file;
  std::vector<std::string> unheard;  // environment variables of options that only services have
  int drain_timeout_s = 30;
  LogConfig log;
  bool log_level_given = false, log_format_given = false;  // then services have them, too
};

// nullopt: go on; otherwise the exit code. Throws as ServiceOptions::Parse does, and Error(kUsage)
// for options that exclude each other and for keys of a config file that HearServiceSections
// refuses.
std::optional<int> ParseUpOptions(int argc, const char* const* argv, UpOptions& options);

// What is to be started for a run, once names and folders are known.
struct RunPlan {
  std::string name;
  std::string folder;
  RunConfig config;
  bool resuming = false;
  int workers = 0;     // of each actor
  int most_slots = 0;  // replay slots that the run has, or may be given
  std::vector<ChildSpec> children;
};
// `default_name` names a new run that was given none; `cores` are those that may be used. Throws
// Error(kUsage): an existing --run (with the line that resumes it), a name that no run can have, a
// missing --resume, one that a coordinator has or with settings that it keeps, --init-from without
// fitting weights, more workers or resident lanes than the run has replay slots, or resident lanes
// that are no whole groups of the run's.
RunPlan PlanRun(const UpOptions& options, const std::string& default_name, int cores);

// The folder of runs that the planned run lies in. One that is resumed by its path may lie in
// another than --runs-dir, where its name is another run's.
std::string RunsDirOf(const UpOptions& options, const RunPlan& plan);

}  // namespace tetrion
