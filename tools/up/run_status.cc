#include "tools/up/run_status.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tetrion {
namespace {

using Json = nlohmann::json;

// 0 when it is missing or no number.
double Figure(const Json& object, RunFigure figure) {
  const Json* at = &object;
  std::string_view rest = figure.info().name;
  while (at->is_object() && !rest.empty()) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const auto found = at->find(std::string(rest.substr(0, dot)));
    if (found == at->end()) return 0.0;
    at = &*found;
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return at->is_number() ? at->get<double>() : 0.0;
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

double ValueAt(const std::map<std::string, double>& figures, const FigureInfo& figure) {
  const auto at = figures.find(std::string(figure.name));
  return at == figures.end() ? 0.0 : at->second;
}

}  // namespace

double RunStatus::Learner(LearnerFigure figure) const {
  return ValueAt(learner, figure.info());
}
double RunStatus::Trainer(TrainerFigure figure) const {
  return ValueAt(learner, figure.info());
}
double RunStatus::Actor(ActorFigure figure) const {
  return ValueAt(actor, figure.info());
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
  if (Figure(object, "stop_after.seconds") > 0 || Figure(object, "stop_after.steps") > 0) {
    status.stop_progress = Figure(object, "stop_after.progress");
  }
  return status;
}

RunStatus Follow(const std::optional<RunStatus>& before, RunStatus now) {
  if (!before) return now;
  if (now.learner.empty()) now.learner = before->learner;
  if (now.actor.empty()) now.actor = before->actor;
  return now;
}

std::optional<RunStatus> LastStatusOf(const std::string& metrics_jsonl, std::uint64_t from) {
  constexpr std::streamoff kRead = 1 << 20;  // a run of months has a long file
  std::ifstream file(metrics_jsonl, std::ios::ate);
  std::optional<RunStatus> last;
  const std::streamoff bytes = file.tellg();
  // The line it lies in is no JSON.
  file.seekg(std::max(bytes - kRead, static_cast<std::streamoff>(from)));
  for (std::string line; std::getline(file, line);) {
    if (std::optional<RunStatus> status = ParseStatus(line))
      last = Follow(last, *std::move(status));
  }
  return last;
}

}  // namespace tetrion
