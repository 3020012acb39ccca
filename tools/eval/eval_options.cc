#include "tools/eval/eval_options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"

namespace tetrion {

std::optional<int> ParseEvalOptions(int argc, const char* const* argv, EvalOptions& options) {
  ServiceOptions parser(
      "tetrion-eval", "eval",
      "Measures a run's policy (eval RUN) or shows it in the terminal or as a GIF (play RUN).");
  parser.AddPositional("command", &options.command, "eval or play", /*required=*/true);
  parser.AddPositional("run", &options.run, "run name, path, or latest", /*required=*/true);
  parser.Add("runs-dir", &options.runs_dir, "folder that holds the runs");
  parser.Add("policy", &options.policy, "what plays", {"checkpoint", "random"});
  parser.AddFlag("best", &options.best, "take the checkpoint with the best mean return");
  parser.AddFlag("greedy", &options.greedy, "take the most probable action (the default)");
  parser.AddFlag("sample", &options.sample, "draw actions as in training");
  parser.Add("seed", &options.seed, "seed of the episodes and of drawn actions", 0, UINT64_MAX);
  parser.Add("episodes", &options.episodes, "episodes; 0: 200 for eval, 1 for play", 0, 10'000'000);
  parser.Add("lanes", &options.lanes, "episodes played side by side", 1, 65536);
  parser.Add("fps", &options.fps, "play: frames a second", 0.1, 1000);
  parser.Add("gif", &options.gif,
             "play: write this animated GIF instead of drawing in the terminal");
  parser.Add("steps", &options.steps, "play: at most so many actions an episode; 0: as in the run",
             0, 10'000'000);
  parser.AddFlag("json", &options.json, "eval: print one JSON object");
  if (const std::optional<int> code = parser.Parse(argc, argv)) return code;
  if (options.command != "eval" && options.command != "play") {
    throw Error(ExitCode::kUsage,
                "unknown command '" + options.command + "': use eval RUN or play RUN");
  }
  if (options.greedy && options.sample) {
    throw Error(ExitCode::kUsage, "--greedy and --sample contradict each other: give one");
  }
  if (options.command != "play" && (!options.gif.empty() || options.steps != 0)) {
    throw Error(ExitCode::kUsage, "--gif and --steps belong to play: use play RUN");
  }
  if (options.episodes == 0) options.episodes = options.command == "eval" ? 200 : 1;
  return std::nullopt;
}

}  // namespace tetrion
