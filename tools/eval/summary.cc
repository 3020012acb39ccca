#include "tools/eval/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lib/core/check.h"
#include "lib/core/log.h"

namespace tetrion {
namespace {

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

void Summarise(const std::vector<EpisodeResult>& results, EvalSummary& summary) {
  std::vector<double> returns, lines, lengths;
  for (const EpisodeResult& result : results) {
    returns.push_back(result.episode_return);
    lines.push_back(result.lines);
    lengths.push_back(result.length_steps);
    summary.env_steps += result.length_steps;
  }
  summary.episodes = static_cast<int>(results.size());
  summary.episode_return = SpreadOf(std::move(returns));
  summary.lines = SpreadOf(std::move(lines));
  summary.length = SpreadOf(std::move(lengths));
}

std::string SummaryText(const EvalSummary& summary) {
  std::string text = Format("%s (%s), %s policy", summary.run.c_str(), summary.env.c_str(),
                            summary.policy.c_str());
  if (!summary.checkpoint.empty()) text += Format(", %lld updates", summary.updates);
  text += Format(": %d episodes, %lld steps in %.1f s\n", summary.episodes, summary.env_steps,
                 summary.wall_s);
  text += "                 mean     median        min        max   95% interval of the mean\n";
  text += SpreadText("return", summary.episode_return);
  if (summary.has_lines) text += SpreadText("lines", summary.lines);
  return text + SpreadText("length", summary.length);
}

std::string SummaryJson(const EvalSummary& summary) {
  std::string json = "{\"run\":" + JsonQuoted(summary.run) + ",\"env\":" + JsonQuoted(summary.env) +
                     ",\"policy\":" + JsonQuoted(summary.policy) +
                     ",\"checkpoint\":" + JsonQuoted(summary.checkpoint) +
                     Format(",\"updates\":%lld,\"episodes\":%d,\"env_steps\":%lld,\"wall_s\":%.6g",
                            summary.updates, summary.episodes, summary.env_steps, summary.wall_s);
  json += ",\"return\":" + SpreadJson(summary.episode_return);
  if (summary.has_lines) json += ",\"lines\":" + SpreadJson(summary.lines);
  return json + ",\"length\":" + SpreadJson(summary.length) + "}\n";
}

}  // namespace tetrion
