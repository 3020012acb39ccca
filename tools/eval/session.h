#pragma once

#include <memory>
#include <optional>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/envs/vec_env.h"
#include "lib/policy/policy.h"
#include "lib/run/run_config.h"
#include "tools/eval/eval_options.h"
#include "tools/eval/summary.h"

namespace tetrion {

// A run opened for playing: environment and policy.
struct Session {
  RunConfig config;
  EnvSpec trained_on;  // what the policy sees; `env` may have records with colours
  std::unique_ptr<VecEnv> env;
  std::unique_ptr<Policy> policy;
  std::optional<Checkpoint> checkpoint;  // where the policy has weights, or the command a model
  EvalSummary summary;                   // who plays
};

// Throws Error: kUsage no such run, or the command is not for it; kConfig no checkpoint, a corrupt
// one, or one that does not fit.
Session OpenSession(const EvalOptions& options, int lanes);

}  // namespace tetrion
