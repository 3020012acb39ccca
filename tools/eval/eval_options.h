#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lib/run/run_folder.h"

namespace tetrion {

struct EvalOptions {
  std::string command;  // eval, play or dream
  std::string run;      // name, path or "latest"
  std::string runs_dir = DefaultRunsDir();
  std::string policy = "checkpoint";  // checkpoint, random or linear
  bool best = false;               // the checkpoint with the best mean return instead of the newest
  bool sample = false;             // draw actions instead of taking the most probable
  bool greedy = false;             // the default; contradicts sample
  std::uint64_t seed = 1'000'003;  // of the evaluation's episodes; not the run's, so they are new
  int episodes = 0;                // 0: 200 for eval, 1 for play
  int deaths = 0;                  // eval: play until so many games have ended by death instead
  std::uint64_t total_steps = 0;   // with deaths: but no more than so many steps; 0: no bound
  int lanes = 64;                  // episodes played side by side
  double fps = 12;                 // play, dream: frames a second
  std::string gif;                 // play: draw into this file instead of the terminal; dream: too
  int steps = 0;  // play, dream: at most so many actions an episode; 0: the run's max_steps, or 64
  int context = 5;  // dream: rows that the model sees before it imagines the others
  bool json = false;
  // The run's environment played otherwise; nullopt: as in the run.
  std::optional<std::uint32_t> max_steps;  // 0: games are not cut
  std::optional<bool> iid_pieces;
  std::optional<int> queue_size;
  std::optional<int> board_rows;
  std::optional<bool> spawn_above;
  std::span<const char* const> arguments;  // what they were read from, without the program's name
};

// Same results as ServiceOptions::Parse. Throws Error(kUsage).
[[nodiscard]] std::optional<int> ParseEvalOptions(int argc, const char* const* argv,
                                                  EvalOptions& options);

}  // namespace tetrion
