#include "lib/metrics/figures.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tetrion {
namespace {

void ExpectGoodTable(std::span<const FigureInfo> figures) {
  std::set<std::string> names;
  for (const FigureInfo& info : figures) {
    const std::string name(info.name);
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_."), std::string::npos) << name;
    EXPECT_LE(name.size(), 64U) << name << " does not fit into a heartbeat";
    const bool rate = name.ends_with("_per_s");
    EXPECT_EQ(info.unit.ends_with("/s"), rate) << name;
    const bool time = name.ends_with("_s") || name == "time" || name.ends_with(".seconds");
    EXPECT_EQ(info.unit == "seconds", time && !rate) << name;
  }
}

TEST(FiguresTest, EveryDeclarationFollowsTheNamingRules) {
  ExpectGoodTable(kRunFigures);
  ExpectGoodTable(kActorFigures);
  ExpectGoodTable(kLearnerFigures);
}

TEST(FiguresTest, AFigureWithALabelNamesAMetricWithOneLabelAndNoneWithout) {
  for (const FigureInfo& info : kLearnerFigures) {
    if (info.metric.empty()) continue;
    const MetricInfo& metric = MetricRef::Named(info.metric).info();
    EXPECT_NE(metric.type, MetricType::kHistogram) << info.name;
    EXPECT_EQ(metric.LabelCount(), info.label.empty() ? 0U : 1U) << info.name;
  }
}

}  // namespace
}  // namespace tetrion
