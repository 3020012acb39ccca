#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/metrics/figures.h"
#include "lib/rl/trainer_figures.h"

namespace tetrion {

// The coordinator's /status page, which is also a line of metrics.jsonl.
struct RunStatus {
  std::string run, env, phase;
  double elapsed_s = 0;
  int actors = 0;
  double env_steps = 0, env_steps_per_s = 0;
  double episodes = 0, episodes_per_s = 0;
  double return_mean = 0, return_best = 0, lines_mean = 0, length_mean = 0;
  std::optional<double> stop_progress;    // 0 to 1; nullopt: the run has no end
  std::map<std::string, double> actor;    // sums over the live actors
  std::map<std::string, double> learner;  // with its trainer's

  // A figure of `learner` or `actor`, 0 when it is not there.
  double Learner(LearnerFigure figure) const;
  double Trainer(TrainerFigure figure) const;
  double Actor(ActorFigure figure) const;
  // Lines per 1,000 steps of the last episodes that ended, which favours neither short games nor
  // long ones as the mean of their lines does; 0 without lines.
  double LinesPer1000Steps() const;
};

// nullopt when `json` is no object. Missing or odd fields keep their defaults.
std::optional<RunStatus> ParseStatus(const std::string& json);
// `now`, with the members' last figures from `before` where none is there to report any more.
RunStatus Follow(const std::optional<RunStatus>& before, RunStatus now);
// The last whole line of metrics.jsonl from byte `from` on as a status; nullopt without one.
std::optional<RunStatus> LastStatusOf(const std::string& metrics_jsonl, std::uint64_t from = 0);

}  // namespace tetrion
