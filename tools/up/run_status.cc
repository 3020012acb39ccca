#include "tools/up/run_status.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace tetrion {
namespace {

using Json = nlohmann::json;

double Figure(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : 0.0;
}

std::string Text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

std::map<std::string, double> Figures(const Json& object, const char* key) {
  std::map<std::string, double> figures;
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) return figures;
  for (const auto& [name, value] : at->items()) {
    if (value.is_number()) figures[name] = value.get<double>();
  }
  return figures;
}

double ValueAt(const std::map<std::string, double>& figures, const std::string& key) {
  const auto at = figures.find(key);
  return at == figures.end() ? 0.0 : at->second;
}

}  // namespace

double RunStatus::Learner(const std::string& key) const {
  return ValueAt(learner, key);
}
double RunStatus::Actor(const std::string& key) const {
  return ValueAt(actor, key);
}

double RunStatus::LinesPer1000Steps() const {
  return length_mean > 0 ? 1000.0 * lines_mean / length_mean : 0.0;
}

std::optional<RunStatus> ParseStatus(const std::string& json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  RunStatus status;
  status.run = Text(object, "run");
  status.env = Text(object, "env");
  status.phase = Text(object, "phase");
  status.elapsed_s = Figure(object, "elapsed_s");
  status.actors = static_cast<int>(Figure(object, "actors"));
  status.env_steps = Figure(object, "env_steps");
  status.env_steps_per_s = Figure(object, "env_steps_per_s");
  status.episodes = Figure(object, "episodes");
  status.episodes_per_s = Figure(object, "episodes_per_s");
  status.return_mean = Figure(object, "return_mean");
  status.return_best = Figure(object, "return_best");
  status.lines_mean = Figure(object, "lines_mean");
  status.length_mean = Figure(object, "length_mean");
  status.actor = Figures(object, "actor");
  status.learner = Figures(object, "learner");
  const std::map<std::string, double> stop = Figures(object, "stop_after");
  if (ValueAt(stop, "seconds") > 0 || ValueAt(stop, "steps") > 0) {
    status.stop_progress = ValueAt(stop, "progress");
  }
  return status;
}

RunStatus Follow(const std::optional<RunStatus>& before, RunStatus now) {
  if (!before) return now;
  if (now.learner.empty()) now.learner = before->learner;
  if (now.actor.empty()) now.actor = before->actor;
  return now;
}

std::optional<RunStatus> LastStatusOf(const std::string& metrics_jsonl) {
  std::ifstream file(metrics_jsonl);
  std::optional<RunStatus> last;
  for (std::string line; std::getline(file, line);) {
    if (std::optional<RunStatus> status = ParseStatus(line))
      last = Follow(last, *std::move(status));
  }
  return last;
}

}  // namespace tetrion
