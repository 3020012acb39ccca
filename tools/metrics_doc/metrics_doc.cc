#include "tools/metrics_doc/metrics_doc.h"

#include <charconv>
#include <span>

#include "lib/metrics/figures.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "lib/rl/vtrace/vtrace_figures.h"

namespace tetrion {
namespace {

std::string BoundsText(std::span<const double> bounds) {
  std::string text;
  for (const double bound : bounds) {
    char buffer[32];
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, bound);
    text += (text.empty() ? "" : " ") + std::string(buffer, result.ptr);
  }
  return text;
}

std::string LabelsText(const MetricInfo& info) {
  std::string text;
  for (std::size_t i = 0; i < info.LabelCount(); ++i) {
    text += (i == 0 ? "" : ", ") + std::string(info.labels[i]);
  }
  return text;
}

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "unknown";
}

std::string Quoted(const std::string& name) {
  return "`" + name + "`";
}

std::string MetricText(const FigureInfo& info) {
  if (info.metric.empty()) return "";
  if (info.label.empty()) return Quoted(std::string(info.metric));
  const std::string_view label = MetricRef::Named(info.metric).info().labels[0];
  return Quoted(std::string(info.metric) + "{" + std::string(label) + "=\"" +
                std::string(info.label) + "\"}");
}

std::string_view HelpText(const FigureInfo& info) {
  return info.help.empty() ? MetricRef::Named(info.metric).info().help : info.help;
}

// A line for each figure of the object `where`.
std::string FiguresText(const std::string& where, std::span<const FigureInfo> figures) {
  std::string text;
  for (const FigureInfo& info : figures) {
    if (!info.in_status) continue;
    text += "| " + Quoted(where + std::string(info.name)) + " | " + std::string(info.unit) + " | " +
            MetricText(info) + " | " + std::string(HelpText(info)) + " |\n";
  }
  return text;
}

}  // namespace

std::string GenerateMetricsDoc() {
  std::string text =
      "# Metrics\n\n"
      "Generated from lib/metrics/catalog_table.h, lib/metrics/figures.h and the trainer's "
      "figures\n"
      "by `tetrion-metrics-doc`; a test compares the two. Every service serves metrics at "
      "`/metrics`; a service\nshows those that it has.\n\n"
      "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  std::string buckets;
  for (const MetricInfo& info : kCatalog) {
    const std::string name = Quoted(std::string(info.name));
    text += "| " + name + " | " + TypeName(info.type) + " | " + std::string(info.unit) + " | " +
            LabelsText(info) + " | " + std::string(info.help) + " |\n";
    if (!info.bounds.empty()) buckets += "| " + name + " | " + BoundsText(info.bounds) + " |\n";
  }
  text +=
      "\n## Histogram buckets\n\nUpper bounds; `+Inf` is implied.\n\n"
      "| metric | bounds |\n|---|---|\n" +
      buckets;
  return text +
         "\n## Figures\n\n"
         "The coordinator shows them at `/status` and writes them to the run's `metrics.jsonl` "
         "every 5 s;\nbesides them stand the texts `run`, `env` and `phase`. `actor.` are sums "
         "over "
         "the live actors.\n\n"
         "| figure | unit | the same as | meaning |\n|---|---|---|---|\n" +
         FiguresText("", kRunFigures) + FiguresText("actor.", kActorFigures) +
         FiguresText("learner.", kLearnerFigures) +
         "\n### The learner's trainer: V-trace\n\n"
         "| figure | unit | the same as | meaning |\n|---|---|---|---|\n" +
         FiguresText("learner.", kVtraceFigures) +
         "\n### The learner's trainer: DreamerV3\n\n"
         "| figure | unit | the same as | meaning |\n|---|---|---|---|\n" +
         FiguresText("learner.", kDreamerFigures);
}

}  // namespace tetrion
