#pragma once

#include <optional>
#include <string>

#include "lib/setup/inference_choice.h"
#include "lib/setup/member.h"
#include "services/common/health_check.h"

namespace tetrion::actor {

// What the actor's user may say.
struct ActorOptions : InferenceChoice {
  MemberOptions member = {.name = "actor", .drain_timeout_s = 10};
  HealthCheck health;
  int workers = 1;
  std::string policy = "run";
  std::string rows = "auto";  // after parsing: "shm" or "tcp"
  std::string compress = "none";
};

// nullopt: go on with `options`. 0: --help or --version was answered. Throws Error(kUsage).
std::optional<int> ParseActorOptions(int argc, const char* const* argv, ActorOptions& options);

}  // namespace tetrion::actor
