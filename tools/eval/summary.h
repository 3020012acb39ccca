#pragma once

#include <string>
#include <vector>

#include "lib/frame/token.h"
#include "tools/eval/per_death.h"

namespace tetrion {

// What one figure did over the episodes.
struct Spread {
  double mean = 0, median = 0, min = 0, max = 0;
  // 95% confidence interval of the mean (normal approximation).
  double low = 0, high = 0;
};

// Of at least one value; the order does not matter.
Spread SpreadOf(std::vector<double> values);

struct EvalSummary {
  std::string run, env, policy;  // policy: "greedy", "sampled", "random" or "linear"
  std::string checkpoint;        // path; empty for policies without one
  std::string game;              // of Tetris: pieces, preview, cap
  long long updates = 0;
  bool has_lines = false;
  double wall_s = 0;

  // Games that ended, by death or because they were cut, and those still in play at the end.
  int episodes = 0, deaths = 0, unfinished = 0;
  long long env_steps = 0;                    // of all of them
  Spread episode_return, lines, length;       // over the games that ended, while none is in play
  PerDeath lines_per_death, steps_per_death;  // over all of them
};

// What was played. `stopped_at_death`: until so many games had ended by death.
struct PlayedGames {
  std::vector<EpisodeResult> ended, unfinished;
  int deaths = 0;
  bool stopped_at_death = false;
};
// Fills the second half of `summary`.
void Summarise(const PlayedGames& games, EvalSummary& summary);

std::string SummaryText(const EvalSummary& summary);
std::string SummaryJson(const EvalSummary& summary);

}  // namespace tetrion
