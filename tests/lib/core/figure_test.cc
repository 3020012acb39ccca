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
