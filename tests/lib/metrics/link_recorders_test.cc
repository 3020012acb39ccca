#include "lib/metrics/link_recorders.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tetrion
