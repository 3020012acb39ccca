#include "tools/eval/eval_options.h"

#include "lib/core/error.h"
#include "lib/run/options.h"
#include "lib/run/run_config.h"

namespace tetrion {
namespace {

constexpr int kDreamtSteps = 64, kMostDreamtSteps = 4096;

// What the user may want played otherwise than in the run; only what was given counts.
struct Changes {
  std::uint32_t max_steps = 0;
  bool iid_pieces = false;
  int queue_size = RunConfig().queue_size;
  int board_rows = RunConfig().board_rows;
  bool spawn_above = false;
};

void Declare(ServiceOptions& parser, EvalOptions& options, Changes& changes) {
  parser.AddPositional("command", &options.command, "eval, play or dream", /*required=*/true);
  parser.AddPositional("run", &options.run, "run name, path, or latest", /*required=*/true);
  parser.Add("runs-dir", &options.runs_dir, "folder that holds the runs");
  parser.Add("policy", &options.policy,
             "what plays; linear: a fixed rule over the view afterstates, of tetris-placement only",
             {"checkpoint", "random", "linear"});
  parser.AddFlag("best", &options.best, "take the checkpoint with the best mean return");
  parser.AddFlag("greedy", &options.greedy, "take the most probable action (the default)");
  parser.AddFlag("sample", &options.sample, "draw actions as in training");
  parser.Add("seed", &options.seed, "seed of the episodes and of drawn actions", 0, UINT64_MAX);
  parser.Add("episodes", &options.episodes, "episodes; 0: 200 for eval, 1 for play", 0, 10'000'000);
  parser.Add(
      "deaths", &options.deaths,
      "eval: instead of episodes, play until so many games have ended by themselves (Tetris: "
      "by death), and tell what is reached a death; a policy whose games are all cut never gets "
      "there, which --total-steps bounds; 0: play episodes",
      0, 1'000'000, "games");
  parser.Add("total-steps", &options.total_steps,
             "eval: with --deaths, end after so many steps all the same; 0: never", 0, UINT64_MAX,
             "steps");
  parser.Add("max-steps", &changes.max_steps,
             "cut games here; 0: never; when it is not given the run's max_steps", 0, 1U << 30,
             "steps");
  parser.AddFlag("iid-pieces", &changes.iid_pieces,
                 "Tetris: independent pieces, with =false 7-bags; not given: as in the run");
  parser.Add("queue-size", &changes.queue_size,
             "Tetris: pieces in the preview, where the policy's input allows another number; not "
             "given: as in the run",
             0, kMostQueuePieces, "pieces");
  parser.Add("board-rows", &changes.board_rows,
             "Tetris: rows of the field; not given: as in the run", kFewestBoardRows,
             kMostBoardRows, "rows");
  parser.AddFlag(
      "spawn-above", &changes.spawn_above,
      "tetris-placement: pieces appear above the field, with =false in its highest rows; "
      "not given: as in the run");
  parser.Add("lanes", &options.lanes,
             "episodes played side by side; with --deaths at most an eighth as many as deaths", 1,
             65536);
  parser.Add("fps", &options.fps, "play, dream: frames a second", 0.1, 1000);
  parser.Add("gif", &options.gif,
             "play: write this animated GIF instead of drawing in the terminal; dream: draw what "
             "was and what was imagined, too");
  parser.Add("steps", &options.steps,
             "play, dream: at most so many actions an episode; 0: play, as in the run; dream, 64",
             0, 10'000'000);
  parser.Add("context", &options.context,
             "dream: rows that the world model sees before it imagines the others", 1,
             kMostDreamtSteps, "rows");
  parser.AddFlag("json", &options.json, "eval: print one JSON object");
  // A run's TETRION_SEED or TETRION_MAX_STEPS says nothing of what is measured.
  parser.ReadVariablesOf({"runs-dir"});
}

// Options that what was asked for has no use for.
void CheckGiven(const ServiceOptions& parser, const EvalOptions& options) {
  if (options.command != "dream" && parser.Given("context")) {
    throw Error(ExitCode::kUsage, "--context belongs to dream: use dream RUN");
  }
  for (const char* option : {"json", "lanes"}) {
    if (options.command == "eval" || !parser.Given(option)) continue;
    throw Error(ExitCode::kUsage, "--" + std::string(option) + " belongs to eval: use eval RUN");
  }
  if (options.command == "eval" && parser.Given("fps")) {
    throw Error(ExitCode::kUsage, "--fps belongs to play and dream: use play RUN");
  }
  if (parser.Given("greedy") && !options.greedy && !options.sample) {
    throw Error(ExitCode::kUsage, "--greedy=false does not say how to play instead: give --sample");
  }
  for (const char* option : {"best", "sample", "greedy"}) {
    if (options.policy == "checkpoint" || !parser.Given(option)) continue;
    throw Error(ExitCode::kUsage, "--" + std::string(option) +
                                      " says how a checkpoint plays, not " + options.policy +
                                      ": leave it out");
  }
}

void Check(const EvalOptions& options) {
  const bool dream = options.command == "dream";
  if (options.command != "eval" && options.command != "play" && !dream) {
    throw Error(ExitCode::kUsage,
                "unknown command '" + options.command + "': use eval RUN, play RUN or dream RUN");
  }
  if (options.greedy && options.sample) {
    throw Error(ExitCode::kUsage, "--greedy and --sample contradict each other: give one");
  }
  if (options.command == "eval" && (!options.gif.empty() || options.steps != 0)) {
    throw Error(ExitCode::kUsage, "--gif and --steps belong to play and dream: use play RUN");
  }
  if (dream && options.episodes != 0) {
    throw Error(ExitCode::kUsage, "--episodes belongs to eval and play: dream plays one");
  }
  if (dream && options.steps > kMostDreamtSteps) {
    throw Error(ExitCode::kUsage, "--steps " + std::to_string(options.steps) +
                                      ": dream keeps what it draws, at most " +
                                      std::to_string(kMostDreamtSteps) + " steps");
  }
  if (options.command != "eval" && (options.deaths != 0 || options.total_steps != 0)) {
    throw Error(ExitCode::kUsage, "--deaths and --total-steps belong to eval: use eval RUN");
  }
  if (options.deaths != 0 && options.episodes != 0) {
    throw Error(ExitCode::kUsage, "--episodes and --deaths both say when to end: give one");
  }
  if (options.deaths == 0 && options.total_steps != 0) {
    throw Error(ExitCode::kUsage,
                "--total-steps ends what --deaths begins: give --deaths N, too; a mean over the "
                "games that end in time would prefer short ones");
  }
}

}  // namespace

std::optional<int> ParseEvalOptions(int argc, const char* const* argv, EvalOptions& options) {
  ServiceOptions parser("tetrion-eval", "",
                        "Measures a run's policy (eval RUN), shows it in the terminal or as a GIF "
                        "(play RUN), or shows "
                        "what DreamerV3's world model imagines of an episode (dream RUN).");
  Changes changes;
  Declare(parser, options, changes);
  if (const std::optional<int> code = parser.Parse(argc, argv)) return code;
  CheckGiven(parser, options);
  Check(options);
  if (parser.Given("max-steps")) options.max_steps = changes.max_steps;
  if (parser.Given("iid-pieces")) options.iid_pieces = changes.iid_pieces;
  if (parser.Given("queue-size")) options.queue_size = changes.queue_size;
  if (parser.Given("board-rows")) options.board_rows = changes.board_rows;
  if (parser.Given("spawn-above")) options.spawn_above = changes.spawn_above;
  if (options.episodes == 0) options.episodes = options.command == "eval" ? 200 : 1;
  if (options.command == "dream" && options.steps == 0) options.steps = kDreamtSteps;
  options.arguments = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  return std::nullopt;
}

}  // namespace tetrion
