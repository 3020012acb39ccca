#include "lib/metrics/registry.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <thread>

namespace tetrion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CatalogTest, EveryEntryFollowsTheNamingRules) {
  std::set<std::string> names;
  for (const MetricInfo& info : kCatalog) {
    const std::string name(info.name);
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_EQ(name.rfind("tetrion_", 0), 0U) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
    EXPECT_EQ(info.type == MetricType::kCounter, name.ends_with("_total")) << name;
    EXPECT_EQ(info.type == MetricType::kHistogram, !info.bounds.empty()) << name;
    EXPECT_FALSE(info.help.empty()) << name;
    for (const char* unit : {"seconds", "bytes", "rows"}) {
      if (info.unit == unit) {
        EXPECT_THAT(name, HasSubstr(unit));
      }
    }
  }
}

TEST(RegistryTest, CounterAppearsWithHelpTypeAndLabels) {
  MetricsRegistry registry;
  registry.Counter("tetrion_actor_wait_seconds_total", {"3", "ring"}).Add(1.5);
  const std::string text = registry.SerializeText();
  EXPECT_THAT(text, HasSubstr("# TYPE tetrion_actor_wait_seconds_total counter\n"));
  EXPECT_THAT(text, HasSubstr("# HELP tetrion_actor_wait_seconds_total time a worker was blocked"));
  EXPECT_THAT(text,
              HasSubstr("tetrion_actor_wait_seconds_total{worker=\"3\",reason=\"ring\"} 1.5\n"));
}

TEST(RegistryTest, NothingAppearsBeforeItIsAskedFor) {
  MetricsRegistry registry;
  EXPECT_EQ(registry.SerializeText(), "");
}

TEST(RegistryTest, SameArgumentsGiveTheSameRecorder) {
  MetricsRegistry registry;
  EXPECT_EQ(&registry.Counter("tetrion_learner_updates_total"),
            &registry.Counter("tetrion_learner_updates_total"));
  EXPECT_NE(&registry.Gauge("tetrion_replay_rows", {"0"}),
            &registry.Gauge("tetrion_replay_rows", {"1"}));
}

TEST(RegistryTest, WritersOfOneSeriesAreAddedUp) {
  MetricsRegistry registry;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 4; ++writer) {
    HotCounter& counter =
        registry.Counter("tetrion_link_messages_total", {"learner", "in"}, writer);
    HotHistogram& histogram = registry.Histogram("tetrion_actor_inference_seconds", {}, writer);
    threads.emplace_back([&counter, &histogram] {
      for (int i = 0; i < 10'000; ++i) {
        counter.Increment();
        histogram.Observe(0.002);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = registry.SerializeText();
  EXPECT_THAT(text,
              HasSubstr("tetrion_link_messages_total{peer=\"learner\",direction=\"in\"} 40000\n"));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_inference_seconds_count 40000\n"));
}

TEST(RegistryTest, HistogramBucketsAreCumulative) {
  MetricsRegistry registry;
  HotHistogram& lag = registry.Histogram("tetrion_actor_policy_lag_versions");
  for (const double value : {0.0, 1.0, 3.0, 1000.0}) lag.Observe(value);
  const std::string text = registry.SerializeText();
  EXPECT_THAT(text, HasSubstr("tetrion_actor_policy_lag_versions_bucket{le=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_policy_lag_versions_bucket{le=\"2\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_policy_lag_versions_bucket{le=\"4\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_policy_lag_versions_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("tetrion_actor_policy_lag_versions_sum 1004\n"));
}

TEST(RegistryTest, GaugesCanBeRefreshedAtScrapeTime) {
  MetricsRegistry registry;
  HotGauge& gauge = registry.Gauge("tetrion_coordinator_actors");
  int scrapes = 0;
  registry.OnScrape([&] { gauge.Set(++scrapes); });
  EXPECT_THAT(registry.SerializeText(), HasSubstr("tetrion_coordinator_actors 1\n"));
  EXPECT_THAT(registry.SerializeText(), HasSubstr("tetrion_coordinator_actors 2\n"));
}

TEST(RegistryTest, EndlessLabelValuesEndInOneSeries) {
  MetricsRegistry registry;
  for (std::size_t i = 0; i < 10 * MetricsRegistry::kMaxSeries; ++i) {
    registry.Counter("tetrion_actor_env_steps_total", {std::to_string(i)}).Increment();
  }
  const std::string text = registry.SerializeText();
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(lines, MetricsRegistry::kMaxSeries + 2);  // with # HELP and # TYPE
  EXPECT_THAT(
      text, HasSubstr("worker=\"other\"} " + std::to_string(9 * MetricsRegistry::kMaxSeries + 1)));
}

TEST(RegistryDeathTest, LabelsAndTypesMustMatchTheCatalog) {
  MetricsRegistry registry;
  EXPECT_DEATH(registry.Counter("tetrion_actor_env_steps_total"), "label values");
  EXPECT_DEATH(registry.Gauge("tetrion_learner_updates_total"), "another type");
  EXPECT_DEATH(registry.Counter("tetrion_learner_updates_total", {}, -1), "writer");
}

}  // namespace
}  // namespace tetrion
