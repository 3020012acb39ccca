#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/log.h"
#include "lib/run/run_config.h"

namespace tetrion {

// The actor's own options; `given` are run settings its user insists on, which the coordinator
// checks against the run's.
struct ActorOptions {
  std::string run_folder;
  std::string coordinator;
  std::string name = "actor";
  int workers = 1;
  std::string shm_dir;
  std::string http_bind = "127.0.0.1:0";
  std::string policy = "run";
  int drain_timeout_s = 10;
  int give_up_s = 120;
  LogConfig log;
  std::vector<Setting> given;
};

// nullopt: go on with `options`. 0: --help or --version was answered. Throws Error(kUsage).
std::optional<int> ParseActorOptions(int argc, const char* const* argv, ActorOptions& options);
// The section of docs/options.md.
std::string ActorOptionsMarkdown();

}  // namespace tetrion
