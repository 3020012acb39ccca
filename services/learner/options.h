#pragma once

#include <optional>
#include <string>

#include "lib/setup/device_choice.h"
#include "lib/setup/member.h"
#include "services/common/health_check.h"
#include "services/learner/rows_endpoint.h"

namespace tetrion::learner {

// What the learner's user may say.
struct LearnerOptions {
  MemberOptions member = {.name = "learner", .drain_timeout_s = 20};
  HealthCheck health;
  std::string runs_dir;  // folder of the run folders; empty: where the coordinator has it
  bool resume = false;
  bool force = false;
  int threads = 0;  // 0: what suits the network
  DeviceChoice replay;
  RowsChoice rows;
  double checkpoint_every_s = 30;
  int keep_checkpoints = 3;
};

// nullopt: go on with `options`. 0: --help or --version was answered. Throws Error(kUsage).
std::optional<int> ParseLearnerOptions(int argc, const char* const* argv, LearnerOptions& options);

}  // namespace tetrion::learner
