#include "lib/metrics/log_recorder.h"

#include <gmock/gmock.h>

namespace tetrion {
namespace {

TEST(LogRecorderTest, EachScrapeShowsTheLinesLostSoFar) {
  MetricsRegistry registry;
  ServeLostLogLines(registry);
  SetUpLogging({.service = "test", .file = "/dev/full"});
  for (int scrape = 0; scrape < 2; ++scrape) {
    log::info("to a full disk");
    EXPECT_THAT(registry.SerializeText(),
                testing::HasSubstr("\ntetrion_log_lines_lost_total " +
                                   std::to_string(LostLogLines()) + "\n"));
  }
  EXPECT_EQ(LostLogLines(), 2U);
  SetUpLogging({.service = "test"});
}

}  // namespace
}  // namespace tetrion
