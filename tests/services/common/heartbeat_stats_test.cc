#include "services/common/heartbeat_stats.h"

#include <gtest/gtest.h>

#include <array>

namespace tetrion {
namespace {

TEST(HeartbeatStatsTest, FiguresOfTheStatusAreAppendedWithTheirValues) {
  static constexpr std::array kFigures = {
      FigureInfo{"rows", "rows", "told"},
      FigureInfo{.name = "judged", .unit = "", .help = "of its own process", .in_status = false},
      FigureInfo{"loops", "loops", "told"},
  };
  std::vector<wire::Stat> stats = {{"before", 9}};
  AddStats(kFigures, std::array{1.0, 2.0, 3.0}, stats);
  ASSERT_EQ(stats.size(), 3U);
  EXPECT_EQ(stats[0].name, "before");
  EXPECT_EQ(stats[1].name, "rows");
  EXPECT_EQ(stats[1].value, 1);
  EXPECT_EQ(stats[2].name, "loops");
  EXPECT_EQ(stats[2].value, 3);
}

}  // namespace
}  // namespace tetrion
