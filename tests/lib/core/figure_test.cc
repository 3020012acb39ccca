#include "lib/core/figure.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

constexpr std::array kTable = {
    FigureInfo{"rows", "rows", "one"},
    FigureInfo{"wait_s", "seconds", "another"},
    FigureInfo{"loops", "loops", "a third"},
};
using TestFigure = FigureOf<kTable>;

TEST(FigureTest, ANameLeadsToItsDeclaration) {
  constexpr TestFigure kWait = "wait_s";
  EXPECT_EQ(kWait.index(), 1U);
  EXPECT_EQ(kWait.info().unit, "seconds");
}

TEST(FigureTest, AFigureIsExplainedByItselfOrByItsMetricAlone) {
  constexpr std::array kTwice = {FigureInfo{"rows", "rows", "as the metric says", "rows_total"}};
  constexpr std::array kNowhere = {FigureInfo{.name = "rows", .unit = "rows"}};
  constexpr std::array kByMetric = {
      FigureInfo{.name = "rows", .unit = "rows", .metric = "rows_total"}};
  constexpr std::array kOneLabel = {FigureInfo{"rows", "rows", "those lost", "rows_total", "lost"}};
  EXPECT_TRUE(ExplainedOnce(kTable));
  EXPECT_TRUE(ExplainedOnce(kByMetric));
  EXPECT_TRUE(ExplainedOnce(kOneLabel));
  EXPECT_FALSE(ExplainedOnce(kTwice));
  EXPECT_FALSE(ExplainedOnce(kNowhere));
}

TEST(FigureTest, ValuesStandInTheOrderOfTheTableAndAreZeroUntilSet) {
  FigureValues<kTable> values;
  values["loops"] = 3;
  values["rows"] += 0.5;
  ASSERT_EQ(values.all().size(), kTable.size());
  EXPECT_EQ(values.all()[0], 0.5);
  EXPECT_EQ(values.all()[1], 0);
  EXPECT_EQ(values.all()[TestFigure("loops").index()], 3);
}

}  // namespace
}  // namespace tetrion
