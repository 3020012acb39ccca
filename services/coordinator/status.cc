#include "services/coordinator/status.h"

#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "lib/core/log.h"

namespace tetrion::coordinator {
namespace {

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

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

JsonObject& JsonObject::AddJson(std::string_view key, std::string_view json) {
  if (!fields_.empty()) fields_ += ',';
  fields_ += JsonQuoted(std::string(key));
  fields_ += ':';
  fields_ += json;
  return *this;
}

JsonObject& JsonObject::Add(std::string_view key, std::string_view text) {
  return AddJson(key, JsonQuoted(std::string(text)));
}

JsonObject& JsonObject::Add(std::string_view key, double value) {
  return AddJson(key, Number(value));
}

JsonObject& JsonObject::Add(std::string_view key, std::uint64_t value) {
  return AddJson(key, std::to_string(value));
}

JsonObject& JsonObject::Add(std::string_view key, bool value) {
  return AddJson(key, value ? "true" : "false");
}

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
  status.Add("actors", std::uint64_t{input.sessions.Count(wire::Role::kActor)});
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
