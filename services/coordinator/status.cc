#include "services/coordinator/status.h"

#include <map>

#include "lib/core/json.h"

namespace tetrion::coordinator {
namespace {

std::string StatsJson(const SessionTable& sessions, wire::Role role) {
  std::map<std::string, double> sums;
  for (const auto& [number, session] : sessions.sessions()) {
    if (session.role != role) continue;
    for (const wire::Stat& stat : session.stats) sums[stat.name] += stat.value;
  }
  JsonObject object;
  for (const auto& [name, value] : sums) object.Add(name, value);
  return object.Text();
}

}  // namespace

std::string StatusJson(const StatusInput& input) {
  const RunState& state = input.state;
  const LedgerCounts& tokens = input.tokens;
  JsonObject stop, counts, status;
  stop.Add("seconds", state.stop_after().seconds).Add("steps", state.stop_after().steps);
  stop.Add("progress", state.Progress());
  counts.Add("issued", tokens.issued).Add("done", tokens.done);
  counts.Add("outstanding", tokens.Outstanding()).Add("free_again", tokens.free_again);
  counts.Add("duplicates", tokens.duplicates).Add("refused", tokens.refused);
  counts.Add("abandoned", tokens.abandoned).Add("freed", tokens.freed);
  status.Add("time", input.unix_time)
      .Add("run", input.run)
      .Add("env", input.env)
      .Add("phase", input.phase);
  status.Add("elapsed_s", state.ElapsedSeconds()).Add("epoch", input.epoch);
  status.Add("actors", input.sessions.Count(wire::Role::kActor));
  status.Add("learner_up", input.sessions.Count(wire::Role::kLearner) > 0);
  status.Add("env_steps", state.env_steps()).Add("env_steps_per_s", state.StepsPerSecond());
  status.Add("episodes", state.episodes()).Add("episodes_per_s", state.EpisodesPerSecond());
  status.Add("return_mean", state.window().MeanReturn()).Add("return_best", state.return_best());
  status.Add("lines_mean", state.window().MeanLines());
  status.Add("length_mean", state.window().MeanLength());
  status.AddJson("stop_after", stop.Text()).AddJson("tokens", counts.Text());
  status.AddJson("actor", StatsJson(input.sessions, wire::Role::kActor));
  status.AddJson("learner", StatsJson(input.sessions, wire::Role::kLearner));
  return status.Text();
}

}  // namespace tetrion::coordinator
