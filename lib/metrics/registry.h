#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/metrics/catalog_table.h"
#include "lib/metrics/recorders.h"

namespace tetrion {

// Hands out the recorders of a process and folds them into Prometheus text at scrape time.
//
// Thread role: any thread may ask for recorders and serialise (a mutex; not for hot paths); the
// recorders themselves have the roles of recorders.h and live as long as the registry.
//
// The metric is named by its full name, checked against the catalog at compile time:
//   HotCounter& steps = registry.Counter("tetrion_actor_env_steps_total", {"3"});
class MetricsRegistry {
 public:
  // Label values of one metric, more than a run's most workers have with four reasons each; further
  // ones share a series whose label values are all "other".
  static constexpr std::size_t kMaxSeries = 1280;
  static constexpr std::size_t kMaxWriters = 64;

  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // One value per label of the catalog's entry, in its order. The same arguments give the same
  // recorder; recorders that differ only in `writer` (a thread's number below kMaxWriters) are
  // added up at scrape. CHECKs type, label count and writer.
  HotCounter& Counter(MetricRef metric, const std::vector<std::string>& labels = {},
                      int writer = 0);
  HotGauge& Gauge(MetricRef metric, const std::vector<std::string>& labels = {});
  HotHistogram& Histogram(MetricRef metric, const std::vector<std::string>& labels = {},
                          int writer = 0);

  // `refresh` runs at the start of every scrape, on the scraping thread: sets gauges from state
  // that is cheaper to read than to push. It must be quick and thread-safe, and ask for no
  // recorders.
  void OnScrape(std::function<void()> refresh);

  // Prometheus text format. Blocks for the mutex only.
  std::string SerializeText() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tetrion
