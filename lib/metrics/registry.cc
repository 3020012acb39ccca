#include "lib/metrics/registry.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "lib/core/check.h"
#include "lib/core/mutex.h"

namespace tetrion {
namespace {

using Labels = std::vector<std::string>;

// One set of label values of a metric: a recorder per writer.
struct Series {
  std::map<int, std::unique_ptr<HotCounter>> counters;
  std::map<int, std::unique_ptr<HotHistogram>> histograms;
  HotGauge gauge;
};

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  TETRION_CHECK(false, "unknown metric type");
}

prometheus::ClientMetric::Histogram Fold(const MetricInfo& info, const Series& series) {
  prometheus::ClientMetric::Histogram folded;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i <= info.bounds.size(); ++i) {
    for (const auto& [writer, histogram] : series.histograms) cumulative += histogram->Count(i);
    const double bound =
        i < info.bounds.size() ? info.bounds[i] : std::numeric_limits<double>::infinity();
    folded.bucket.push_back({cumulative, bound});
  }
  folded.sample_count = cumulative;
  for (const auto& [writer, histogram] : series.histograms) folded.sample_sum += histogram->Sum();
  return folded;
}

prometheus::ClientMetric Fold(const MetricInfo& info, const Labels& labels, const Series& series) {
  prometheus::ClientMetric metric;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    metric.label.push_back({std::string(info.labels[i]), labels[i]});
  }
  switch (info.type) {
    case MetricType::kCounter:
      for (const auto& [writer, counter] : series.counters)
        metric.counter.value += counter->Value();
      break;
    case MetricType::kGauge:
      metric.gauge.value = series.gauge.Value();
      break;
    case MetricType::kHistogram:
      metric.histogram = Fold(info, series);
      break;
  }
  return metric;
}

}  // namespace

class MetricsRegistry::Impl final : public prometheus::Collectable {
 public:
  Series& At(MetricRef metric, MetricType type, const Labels& labels, int writer)
      TETRION_REQUIRES(mu_) {
    const MetricInfo& info = metric.info();
    TETRION_CHECK(info.type == type, "a recorder of another type than the catalog's");
    TETRION_CHECK(labels.size() == info.LabelCount(), "label values do not match the catalog");
    TETRION_CHECK(writer >= 0 && writer < static_cast<int>(kMaxWriters), "writer out of range");
    auto& of_metric = series_[metric.index()];
    const auto found = of_metric.find(labels);
    if (found != of_metric.end()) return found->second;
    const bool full = !labels.empty() && of_metric.size() + 1 >= kMaxSeries;
    return of_metric[full ? Labels(labels.size(), "other") : labels];
  }

  std::vector<prometheus::MetricFamily> Collect() const override TETRION_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    for (const auto& refresh : refreshers_) refresh();
    std::vector<prometheus::MetricFamily> families;
    for (const auto& [index, of_metric] : series_) {
      const MetricInfo& info = kCatalog[index];
      prometheus::MetricFamily family{
          std::string(info.name), std::string(info.help), TypeOf(info.type), {}};
      for (const auto& [labels, series] : of_metric) {
        family.metric.push_back(Fold(info, labels, series));
      }
      families.push_back(std::move(family));
    }
    return families;
  }

  mutable Mutex mu_;
  std::map<std::size_t, std::map<Labels, Series>> series_ TETRION_GUARDED_BY(mu_);
  std::vector<std::function<void()>> refreshers_ TETRION_GUARDED_BY(mu_);
};

MetricsRegistry::MetricsRegistry() : impl_(std::make_unique<Impl>()) {}
MetricsRegistry::~MetricsRegistry() = default;

HotCounter& MetricsRegistry::Counter(MetricRef metric, const Labels& labels, int writer) {
  MutexLock lock(impl_->mu_);
  auto& recorder = impl_->At(metric, MetricType::kCounter, labels, writer).counters[writer];
  if (recorder == nullptr) recorder = std::make_unique<HotCounter>();
  return *recorder;
}

HotGauge& MetricsRegistry::Gauge(MetricRef metric, const Labels& labels) {
  MutexLock lock(impl_->mu_);
  return impl_->At(metric, MetricType::kGauge, labels, 0).gauge;
}

HotHistogram& MetricsRegistry::Histogram(MetricRef metric, const Labels& labels, int writer) {
  MutexLock lock(impl_->mu_);
  auto& recorder = impl_->At(metric, MetricType::kHistogram, labels, writer).histograms[writer];
  if (recorder == nullptr) recorder = std::make_unique<HotHistogram>(metric.info().bounds);
  return *recorder;
}

void MetricsRegistry::OnScrape(std::function<void()> refresh) {
  MutexLock lock(impl_->mu_);
  impl_->refreshers_.push_back(std::move(refresh));
}

std::string MetricsRegistry::SerializeText() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

}  // namespace tetrion
