#include "tools/eval/session.h"

#include <cstdint>
#include <limits>

#include "lib/core/error.h"
#include "lib/envs/registry.h"
#include "lib/policy/random_policy.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_checkpoint.h"
#include "lib/setup/run_policy.h"
#include "lib/setup/run_setup.h"
#include "lib/setup/tensor_library.h"
#include "tools/eval/linear_policy.h"

namespace tetrion {
namespace {

constexpr std::uint32_t kNeverCut = std::numeric_limits<std::uint32_t>::max();

// Whether the command looks at a world model.
bool Dreams(const EvalOptions& options) {
  return options.command == "dream";
}

std::unique_ptr<Policy> MakePolicy(const EvalOptions& options, int lanes, Session& session) {
  if (options.policy != "checkpoint") {
    session.summary.policy = options.policy;
    if (options.policy == "linear") return std::make_unique<LinearPolicy>(session.trained_on);
    return std::make_unique<RandomPolicy>(options.seed, session.trained_on.action);
  }
  session.summary.policy = options.sample ? "sampled" : "greedy";
  return LoadRunPolicy(session.config,
                       {.seed = options.seed, .greedy = !options.sample, .max_lanes = lanes},
                       session.trained_on, *session.checkpoint);
}

// The run's settings with what the user wants played otherwise. A policy that was trained keeps the
// shape of its input, which the preview is a part of.
RunConfig PlayedConfig(const EvalOptions& options, const RunConfig& run) {
  RunConfig played = run;
  played.max_steps = options.max_steps.value_or(run.max_steps);
  if (played.max_steps == 0) played.max_steps = kNeverCut;
  played.iid_pieces = options.iid_pieces.value_or(run.iid_pieces);
  played.queue_size = options.queue_size.value_or(run.queue_size);
  played.board_rows = options.board_rows.value_or(run.board_rows);
  played.spawn_above = options.spawn_above.value_or(run.spawn_above);
  if (!EnvOf(run.env).Takes(kQueueSizeOption) &&
      (options.iid_pieces || options.queue_size || options.board_rows || options.spawn_above)) {
    throw Error(ExitCode::kUsage, run.env +
                                      " has no pieces: leave --iid-pieces, --queue-size, "
                                      "--board-rows and --spawn-above out");
  }
  const EnvSpec trained = EnvSpecOf(run), plays = EnvSpecOf(played);
  if ((options.policy == "checkpoint" || Dreams(options)) &&
      trained.obs.view_floats != plays.obs.view_floats) {
    throw Error(ExitCode::kUsage,
                "--queue-size " + std::to_string(played.queue_size) + ": the policy reads view " +
                    trained.obs.view + " with " + std::to_string(run.queue_size) +
                    " pieces of preview, " + std::to_string(trained.obs.view_floats) +
                    " numbers; with these it would be " + std::to_string(plays.obs.view_floats) +
                    ": only --queue-size " + std::to_string(run.queue_size) +
                    " fits, or --policy linear or random, which take any");
  }
  return played;
}

// What a figure of Tetris means: "10x20, 7-bag pieces, preview 4, from above the field, cut after
// 5000 steps".
std::string GameOf(const RunConfig& played) {
  return "10x" + std::to_string(played.board_rows) + ", " +
         std::string(played.iid_pieces ? "independent" : "7-bag") + " pieces, preview " +
         std::to_string(played.queue_size) + (played.spawn_above ? ", from above the field" : "") +
         (played.max_steps == kNeverCut
              ? ", never cut"
              : ", cut after " + std::to_string(played.max_steps) + " steps");
}

}  // namespace

Session OpenSession(const EvalOptions& options, int lanes) {
  const RunFolder folder = RunFolder::Open(options.runs_dir, options.run);
  Session session;
  RunConfig run = folder.ReadConfig();
  Resolve(run);
  if (Dreams(options) && run.algo != "dreamer") {
    throw Error(ExitCode::kUsage, "run " + folder.name() + " was trained by " + run.algo +
                                      ", which has no world model: dream takes a run of --algo "
                                      "dreamer");
  }
  if (options.policy == "checkpoint" || Dreams(options)) {
    RequireTensorLibrary(run, "tetrion-eval", options.arguments);
  }
  session.config = PlayedConfig(options, run);
  EnvConfig env = EnvConfigOf(session.config);
  env.lanes = lanes;
  env.seed = options.seed;
  session.trained_on = MakeEnvSpec(env);
  if (!options.gif.empty() && !Dreams(options)) {
    const EnvEntry& entry = EnvOf(env.name);
    env.view = entry.ViewOfRecord(entry.picture.record);
  }
  session.env = MakeVecEnv(env);
  session.summary.run = folder.name();
  session.summary.env = session.config.env;
  session.summary.has_lines = session.env->spec().has_lines;
  if (session.summary.has_lines) session.summary.game = GameOf(session.config);
  if (options.policy == "checkpoint" || Dreams(options)) {
    session.checkpoint = CheckpointOf(folder, options.best);
    session.summary.checkpoint = session.checkpoint->path;
    session.summary.updates = session.checkpoint->info.updates;
  }
  session.policy = MakePolicy(options, lanes, session);
  return session;
}

}  // namespace tetrion
