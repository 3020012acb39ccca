#include "services/coordinator/status.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "lib/core/json.h"
#include "lib/metrics/figures.h"

namespace tetrion::coordinator {
namespace {

bool IsOfThePresent(const wire::Stat& stat) {
  return std::ranges::any_of(kLearnerFigures, [&](const FigureInfo& figure) {
    return figure.of_the_present && figure.name == stat.name;
  });
}

// Of the live members of this role; `left`: of one that is gone, for when there is none.
std::string StatsJson(const SessionTable& sessions, wire::Role role,
                      std::span<const wire::Stat> left) {
  std::map<std::string, double> sums;
  if (sessions.Count(role) == 0) {
    for (const wire::Stat& stat : left) {
      if (!IsOfThePresent(stat)) sums[stat.name] = stat.value;
    }
  }
  for (const auto& [number, session] : sessions.sessions()) {
    if (session.role != role) continue;
    for (const wire::Stat& stat : session.stats) sums[stat.name] += stat.value;
  }
  JsonObject object;
  for (const auto& [name, value] : sums) object.Add(name, value);
  return object.Text();
}

// Its key in its object.
std::string_view Key(RunFigure figure) {
  const std::string_view name = figure.info().name;
  return name.substr(name.find('.') + 1);  // without a dot: all of it
}

std::string StopJson(const RunState& state) {
  JsonObject stop;
  stop.Add(Key("stop_after.seconds"), state.stop_after().seconds);
  stop.Add(Key("stop_after.steps"), state.stop_after().steps);
  stop.Add(Key("stop_after.progress"), state.Progress());
  return stop.Text();
}

std::string TokensJson(const LedgerCounts& tokens) {
  JsonObject counts;
  counts.Add(Key("tokens.issued"), tokens.issued);
  counts.Add(Key("tokens.done"), tokens.done);
  counts.Add(Key("tokens.outstanding"), tokens.Outstanding());
  counts.Add(Key("tokens.free_again"), tokens.free_again);
  counts.Add(Key("tokens.duplicates"), tokens.duplicates);
  counts.Add(Key("tokens.refused"), tokens.refused);
  counts.Add(Key("tokens.abandoned"), tokens.abandoned);
  counts.Add(Key("tokens.freed"), tokens.freed);
  return counts.Text();
}

}  // namespace

std::string StatusJson(const StatusInput& input) {
  const RunState& state = input.state;
  JsonObject status;
  status.Add(Key("time"), input.unix_time);
  status.Add("run", input.run).Add("env", input.env).Add("phase", input.phase);
  status.Add(Key("elapsed_s"), state.ElapsedSeconds()).Add(Key("epoch"), input.epoch);
  status.Add(Key("actors"), input.sessions.Count(wire::Role::kActor));
  status.Add(Key("learner_up"), input.sessions.Count(wire::Role::kLearner) > 0);
  status.Add(Key("env_steps"), state.env_steps());
  status.Add(Key("env_steps_per_s"), state.StepsPerSecond());
  status.Add(Key("episodes"), state.episodes());
  status.Add(Key("episodes_per_s"), state.EpisodesPerSecond());
  status.Add(Key("return_mean"), state.window().MeanReturn());
  status.Add(Key("return_best"), state.return_best());
  status.Add(Key("lines_mean"), state.window().MeanLines());
  status.Add(Key("length_mean"), state.window().MeanLength());
  status.AddJson("stop_after", StopJson(state)).AddJson("tokens", TokensJson(input.tokens));
  status.AddJson("actor", StatsJson(input.sessions, wire::Role::kActor, {}));
  status.AddJson("learner", StatsJson(input.sessions, wire::Role::kLearner, input.left_learner));
  return status.Text();
}

}  // namespace tetrion::coordinator
