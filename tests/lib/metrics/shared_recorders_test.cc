#include "lib/metrics/shared_recorders.h"

#include <gmock/gmock.h>

#include <array>
#include <string>

namespace tetrion {
namespace {

TEST(LinkRecordersTest, ScrapeShowsTheNewestTotalsPerPeerAndDirection) {
  MetricsRegistry registry;
  LinkRecorders link(registry, "coordinator");
  link.Set({.messages_in = 3, .messages_out = 4, .bytes_in = 100, .bytes_out = 200});
  link.Set({.messages_in = 5,
            .messages_out = 9,
            .bytes_in = 150,
            .bytes_out = 220,
            .malformed = 1,
            .reconnects = 2});
  const std::string text = registry.SerializeText();
  const auto has = [&text](const std::string& line) {
    return text.find(line) != std::string::npos;
  };
  EXPECT_TRUE(has(R"(tetrion_link_messages_total{peer="coordinator",direction="in"} 5)"));
  EXPECT_TRUE(has(R"(tetrion_link_messages_total{peer="coordinator",direction="out"} 9)"));
  EXPECT_TRUE(has(R"(tetrion_link_bytes_total{peer="coordinator",direction="out"} 220)"));
  EXPECT_TRUE(has(R"(tetrion_link_malformed_total{peer="coordinator"} 1)"));
  EXPECT_TRUE(has(R"(tetrion_link_reconnects_total{peer="coordinator"} 2)"));
}

TEST(LinkRecordersTest, ListeningEndServesNoReconnects) {
  MetricsRegistry registry;
  LinkRecorders link(registry, "members", LinkRecorders::End::kListens);
  link.Set({.messages_in = 3, .reconnects = 2});
  const std::string text = registry.SerializeText();
  EXPECT_NE(text.find(R"(tetrion_link_messages_total{peer="members",direction="in"} 3)"),
            std::string::npos);
  EXPECT_EQ(text.find("tetrion_link_reconnects_total{"), std::string::npos);
}

TEST(LogRecorderTest, EachScrapeShowsTheLinesLostSoFar) {
  MetricsRegistry registry;
  ServeLostLogLines(registry);
  SetUpLogging({.service = "test", .file = "/dev/full"});
  for (int scrape = 0; scrape < 2; ++scrape) {
    log::info("to a full disk");
    EXPECT_THAT(registry.SerializeText(),
                ::testing::HasSubstr("\ntetrion_log_lines_lost_total " +
                                     std::to_string(LostLogLines()) + "\n"));
  }
  EXPECT_EQ(LostLogLines(), 2U);
  SetUpLogging({.service = "test"});
}

constexpr std::array kTable = {
    FigureInfo{"updates", "updates", "a counter", "tetrion_learner_updates_total"},
    FigureInfo{"batches", "batches", "no metric"},
    FigureInfo{"rings", "rings", "a gauge with a label", "tetrion_learner_rings", "attached"},
};

TEST(FigureRecordersTest, FiguresThatNameAMetricAreServedFromTheTablesValues) {
  MetricsRegistry registry;
  FigureRecorders recorders(registry, kTable);
  recorders.Set(std::array{5.0, 6.0, 2.0});
  recorders.Set(std::array{7.0, 8.0, 1.0});
  const std::string text = registry.SerializeText();
  EXPECT_THAT(text, ::testing::HasSubstr("\ntetrion_learner_updates_total 7\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("\ntetrion_learner_rings{state=\"attached\"} 1\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("8")));
}

TEST(FigureRecordersDeathTest, AMetricThatTheCatalogLacksIsABug) {
  static constexpr std::array kUnknown = {FigureInfo{"x", "", "help", "tetrion_unheard_of"}};
  MetricsRegistry registry;
  EXPECT_DEATH(FigureRecorders(registry, kUnknown), "no metric of this name");
}

}  // namespace
}  // namespace tetrion
