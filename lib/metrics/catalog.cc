#include "lib/metrics/catalog.h"

#include <charconv>

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

}  // namespace

const char* MetricTypeName(MetricType type) {
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

std::string GenerateMetricsDoc() {
  std::string text =
      "# Metrics\n\n"
      "Generated from lib/metrics/catalog.h by `tetrion-metrics-doc`; a test compares the two. "
      "Every "
      "service\nserves them at `/metrics`; a service shows those that it has.\n\n"
      "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  std::string buckets;
  for (const MetricInfo& info : kCatalog) {
    const std::string name = "`" + std::string(info.name) + "`";
    text += "| " + name + " | " + MetricTypeName(info.type) + " | " + std::string(info.unit) +
            " | " + LabelsText(info) + " | " + std::string(info.help) + " |\n";
    if (!info.bounds.empty()) buckets += "| " + name + " | " + BoundsText(info.bounds) + " |\n";
  }
  return text + "\n## Histogram buckets\n\nUpper bounds; `+Inf` is implied.\n\n" +
         "| metric | bounds |\n|---|---|\n" + buckets;
}

}  // namespace tetrion
