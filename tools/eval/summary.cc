#include "tools/eval/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "lib/core/check.h"
#include "lib/core/json.h"

namespace tetrion {
namespace {

constexpr double kLower = 0.025, kUpper = 0.975;  // of a two-sided interval of 95%
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Probability of fewer than `events` events where `mean` are expected.
double PoissonBelow(int events, double mean) {
  // Terms so many standard deviations away add nothing to a double.
  constexpr double kFarAway = 12;
  const double reach = kFarAway * std::sqrt(mean) + kFarAway;
  if (events > mean + reach) return 1;
  double sum = 0;
  for (int i = std::max(0, static_cast<int>(mean - reach)); i < events; ++i) {
    sum += std::exp(i * std::log(mean) - mean - std::lgamma(i + 1));
  }
  return sum;
}

constexpr double kNormal95 = 1.959964;  // two-sided 95% quantile of the normal distribution

template <typename... Args>
std::string Format(const char* format, Args... args) {
  char text[512];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

std::string SpreadText(const char* name, const Spread& spread) {
  return Format("  %-8s %10.2f %10.2f %10.2f %10.2f   %.2f .. %.2f\n", name, spread.mean,
                spread.median, spread.min, spread.max, spread.low, spread.high);
}

std::string SpreadJson(const Spread& spread) {
  return Format(
      "{\"mean\":%.6g,\"median\":%.6g,\"min\":%.6g,\"max\":%.6g,\"low95\":%.6g,\"high95\":%.6g}",
      spread.mean, spread.median, spread.min, spread.max, spread.low, spread.high);
}

// How a game's end is called that is no cut: Tetris is lost, other games may be won.
struct EndWords {
  const char *by, *article, *end;
};
EndWords EndWordsOf(const EvalSummary& summary) {
  if (summary.has_lines) return {.by = "death", .article = "a", .end = "death"};
  return {.by = "themselves", .article = "an", .end = "end"};
}

std::string PerDeathText(const char* name, const EndWords& words, const PerDeath& per_death) {
  std::string text = Format("  %s %s %s: ", name, words.article, words.end);
  if (!std::isfinite(per_death.estimate)) {
    return text + Format("no %s; 95%% interval from %.2f\n", words.end, per_death.low);
  }
  return text + Format("%.2f; 95%% interval %.2f .. %.2f\n", per_death.estimate, per_death.low,
                       per_death.high);
}

// Infinity is no number of JSON.
std::string NumberOrNull(double value) {
  return std::isfinite(value) ? Format("%.6g", value) : "null";
}

std::string PerDeathJson(const PerDeath& per_death) {
  return JsonObject()
      .AddJson("estimate", NumberOrNull(per_death.estimate))
      .AddJson("low95", NumberOrNull(per_death.low))
      .AddJson("high95", NumberOrNull(per_death.high))
      .Text();
}

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  TETRION_CHECK(!values.empty(), "a spread needs a value");
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  Spread spread{.min = values.front(), .max = values.back()};
  spread.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  for (const double value : values) spread.mean += value / static_cast<double>(n);
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  const double count = static_cast<double>(n);
  const double half = n > 1 ? kNormal95 * std::sqrt(squares / (count - 1) / count) : 0;
  spread.low = spread.mean - half;
  spread.high = spread.mean + half;
  return spread;
}

double ChiSquaredQuantile(double probability, int half_freedom) {
  TETRION_CHECK(probability > 0 && probability < 1 && half_freedom > 0, "a quantile of something");
  // P(chi2 <= x) = 1 - P(fewer than half_freedom events where x / 2 are expected).
  double low = 0, high = 2.0 * half_freedom;
  while (1 - PoissonBelow(half_freedom, high / 2) < probability) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (1 - PoissonBelow(half_freedom, middle / 2) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

PerDeath PerDeathOf(double total, int deaths, bool stopped_at_death) {
  const int more = stopped_at_death ? deaths : deaths + 1;
  if (deaths == 0) {
    return {kInfinite, 2 * total / ChiSquaredQuantile(kUpper, more), kInfinite};
  }
  return {total / deaths, 2 * total / ChiSquaredQuantile(kUpper, more),
          2 * total / ChiSquaredQuantile(kLower, deaths)};
}

void Summarise(const PlayedGames& games, EvalSummary& summary) {
  std::vector<double> returns, lines, lengths;
  double all_lines = 0;
  for (const EpisodeResult& result : games.ended) {
    returns.push_back(result.episode_return);
    lines.push_back(result.lines);
    lengths.push_back(result.length_steps);
  }
  for (const auto* some : {&games.ended, &games.unfinished}) {
    for (const EpisodeResult& result : *some) {
      all_lines += result.lines;
      summary.env_steps += result.length_steps;
    }
  }
  summary.episodes = static_cast<int>(games.ended.size());
  summary.deaths = games.deaths;
  summary.unfinished = static_cast<int>(games.unfinished.size());
  const auto per_death = [&](double total) {
    return PerDeathOf(total, games.deaths, games.stopped_at_death);
  };
  summary.lines_per_death = per_death(all_lines);
  summary.steps_per_death = per_death(static_cast<double>(summary.env_steps));
  if (!games.unfinished.empty()) return;  // the games that have ended are the short ones
  summary.episode_return = SpreadOf(std::move(returns));
  summary.lines = SpreadOf(std::move(lines));
  summary.length = SpreadOf(std::move(lengths));
}

std::string SummaryText(const EvalSummary& summary) {
  const int cut = summary.episodes - summary.deaths;
  std::string text = Format("%s (%s), %s policy", summary.run.c_str(), summary.env.c_str(),
                            summary.policy.c_str());
  if (!summary.checkpoint.empty()) text += Format(", %lld updates", summary.updates);
  text += Format(": %d episodes, %lld steps in %.1f s\n", summary.episodes, summary.env_steps,
                 summary.wall_s);
  if (!summary.game.empty()) text += "  " + summary.game + "\n";
  if (summary.unfinished == 0) {
    text += "                 mean     median        min        max   95% interval of the mean\n";
    text += SpreadText("return", summary.episode_return);
    if (summary.has_lines) text += SpreadText("lines", summary.lines);
    text += SpreadText("length", summary.length);
  }
  if (cut == 0 && summary.unfinished == 0) return text;
  const EndWords words = EndWordsOf(summary);
  text += Format("  games: %d ended by %s, %d cut, %d still in play\n", summary.deaths, words.by,
                 cut, summary.unfinished);
  if (summary.has_lines) text += PerDeathText("lines", words, summary.lines_per_death);
  text += PerDeathText("steps", words, summary.steps_per_death);
  return text +
         Format("  (all / %ss, for lives of constant risk; interval 2 all / chi2 of 2 %ss)\n",
                words.end, words.end);
}

std::string SummaryJson(const EvalSummary& summary) {
  JsonObject json;
  json.Add("run", summary.run).Add("env", summary.env).Add("policy", summary.policy);
  json.Add("checkpoint", summary.checkpoint).Add("game", summary.game);
  json.Add("updates", summary.updates).Add("episodes", summary.episodes);
  json.Add("env_steps", summary.env_steps).AddJson("wall_s", Format("%.6g", summary.wall_s));
  json.Add("deaths", summary.deaths).Add("cut", summary.episodes - summary.deaths);
  json.Add("unfinished", summary.unfinished);
  if (summary.has_lines) json.AddJson("lines_per_death", PerDeathJson(summary.lines_per_death));
  json.AddJson("steps_per_death", PerDeathJson(summary.steps_per_death));
  if (summary.unfinished == 0) {
    json.AddJson("return", SpreadJson(summary.episode_return));
    if (summary.has_lines) json.AddJson("lines", SpreadJson(summary.lines));
    json.AddJson("length", SpreadJson(summary.length));
  }
  return json.Text() + "\n";
}

}  // namespace tetrion
