#pragma once

#include <string>
#include <vector>

#include "lib/frame/token.h"

namespace tetrion {

// What one figure did over the episodes.
struct Spread {
  double mean = 0, median = 0, min = 0, max = 0;
  // 95% confidence interval of the mean (normal approximation).
  double low = 0, high = 0;
};

// Of at least one value; the order does not matter.
Spread SpreadOf(std::vector<double> values);

// How much is reached until a game ends by death, when other games are cut or still run: all that
// was reached, in every game, over the number of deaths. This is the maximum-likelihood estimate
// when what a life reaches is exponential, as it is where every step has the same risk.
struct PerDeath {
  double estimate = 0;  // infinite without a death
  // 95% interval, exact for exponential lives: 2 T / chi2(0.975, 2 D) to 2 T / chi2(0.025, 2 D) of
  // T in all and D deaths when the play stopped at the last death; when it stopped for another
  // reason the lower end has 2 D + 2 degrees of freedom. Without a death only `low` is finite.
  double low = 0, high = 0;
};

// `total` was reached up to the moment in which play stopped, unfinished games included.
PerDeath PerDeathOf(double total, int deaths, bool stopped_at_death);

// The quantile of the chi-squared distribution with 2 * `half_freedom` degrees of freedom, by
// bisection of its Poisson sum; relative error below 1e-9.
double ChiSquaredQuantile(double probability, int half_freedom);

struct EvalSummary {
  std::string run, env, policy;  // policy: "greedy", "sampled", "random" or "linear"
  std::string checkpoint;        // path; empty for policies without one
  std::string game;              // of Tetris: pieces, preview, cap
  long long updates = 0;
  bool has_lines = false;
  double wall_s = 0;

  // Games that ended, by themselves (a death) or because they were cut, and those still in play.
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
