#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/core/figure.h"
#include "lib/core/log.h"
#include "lib/metrics/registry.h"

// Recorders that several services have.
namespace tetrion {

// Serves tetrion_log_lines_lost_total from now on. Once per registry, by its owner.
inline void ServeLostLogLines(MetricsRegistry& registry) {
  HotCounter& lost = registry.Counter("tetrion_log_lines_lost_total");
  // Scrapes come one at a time, so that the counter has one writer.
  registry.OnScrape([&lost] { lost.RaiseTo(static_cast<double>(LostLogLines())); });
}

// Those figures of a table that are metrics, too. One thread at a time calls Set.
class FigureRecorders {
 public:
  // CHECKs that the catalog has the metrics and that they are gauges or counters.
  FigureRecorders(MetricsRegistry& registry, std::span<const FigureInfo> figures) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (figures[i].metric.empty()) continue;
      const MetricRef metric = MetricRef::Named(figures[i].metric);
      std::vector<std::string> labels;
      if (!figures[i].label.empty()) labels.emplace_back(figures[i].label);
      const bool counts = metric.info().type == MetricType::kCounter;
      recorders_.push_back({.figure = i,
                            .counter = counts ? &registry.Counter(metric, labels) : nullptr,
                            .gauge = counts ? nullptr : &registry.Gauge(metric, labels)});
    }
  }

  // `values`: of the whole table, in its order. Counters never go down.
  void Set(std::span<const double> values) {
    for (const Recorder& recorder : recorders_) {
      const double value = values[recorder.figure];
      if (recorder.counter != nullptr) recorder.counter->RaiseTo(value);
      if (recorder.gauge != nullptr) recorder.gauge->Set(value);
    }
  }

 private:
  struct Recorder {
    std::size_t figure;  // its place in the table
    HotCounter* counter;
    HotGauge* gauge;
  };
  std::vector<Recorder> recorders_;
};

// Running totals of a control connection, as its socket counts them.
struct LinkTotals {
  std::uint64_t messages_in = 0, messages_out = 0;
  std::uint64_t bytes_in = 0, bytes_out = 0;
  std::uint64_t malformed = 0, reconnects = 0;
};

// The recorders of one control socket. One thread, the link's, calls Set.
class LinkRecorders {
 public:
  // A socket that only listens never connects again and serves no such count.
  enum class End { kConnects, kListens };

  // `peer`: who is at the other end, "coordinator".
  LinkRecorders(MetricsRegistry& registry, const std::string& peer, End end = End::kConnects)
      : messages_in_(registry.Counter("tetrion_link_messages_total", {peer, "in"})),
        messages_out_(registry.Counter("tetrion_link_messages_total", {peer, "out"})),
        bytes_in_(registry.Counter("tetrion_link_bytes_total", {peer, "in"})),
        bytes_out_(registry.Counter("tetrion_link_bytes_total", {peer, "out"})),
        malformed_(registry.Counter("tetrion_link_malformed_total", {peer})),
        reconnects_(end == End::kListens
                        ? nullptr
                        : &registry.Counter("tetrion_link_reconnects_total", {peer})) {}

  // Totals never go down; a reader between two calls sees the earlier ones.
  void Set(const LinkTotals& totals) {
    messages_in_.RaiseTo(static_cast<double>(totals.messages_in));
    messages_out_.RaiseTo(static_cast<double>(totals.messages_out));
    bytes_in_.RaiseTo(static_cast<double>(totals.bytes_in));
    bytes_out_.RaiseTo(static_cast<double>(totals.bytes_out));
    malformed_.RaiseTo(static_cast<double>(totals.malformed));
    if (reconnects_ != nullptr) reconnects_->RaiseTo(static_cast<double>(totals.reconnects));
  }

 private:
  HotCounter &messages_in_, &messages_out_, &bytes_in_, &bytes_out_, &malformed_;
  HotCounter* const reconnects_;
};

}  // namespace tetrion
