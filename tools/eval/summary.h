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

struct EvalSummary {
  std::string run, env, policy;  // policy: "greedy", "sampled" or "random"
  std::string checkpoint;        // path; empty for the random policy
  long long updates = 0;
  int episodes = 0;
  bool has_lines = false;
  Spread episode_return, lines, length;
  long long env_steps = 0;
  double wall_s = 0;
};

// Fills episodes, the spreads and env_steps.
void Summarise(const std::vector<EpisodeResult>& results, EvalSummary& summary);

std::string SummaryText(const EvalSummary& summary);
std::string SummaryJson(const EvalSummary& summary);

}  // namespace tetrion
