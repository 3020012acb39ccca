#pragma once

#include <memory>
#include <string>

#include "lib/frame/specs.h"
#include "lib/policy/policy.h"
#include "lib/run/run_config.h"

namespace tetrion::actor {

// The policy a worker acts with: `kind` "run" (the run's network, weights from the learner) or
// "random". Throws Error(kUsage) when this build has no networks (TETRION_TORCH=OFF) and one is
// asked for.
std::unique_ptr<Policy> MakeWorkerPolicy(const std::string& kind, const RunConfig& config,
                                         const EnvSpec& env);

}  // namespace tetrion::actor
