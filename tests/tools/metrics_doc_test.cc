#include "tools/metrics_doc/metrics_doc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/source_file.h"

namespace tetrion {
namespace {

TEST(MetricsDocTest, DocumentationIsUpToDate) {
  std::ifstream file(testing::SourceFile("docs/metrics.md"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), GenerateMetricsDoc())
      << "run build/cpu/bin/tetrion-metrics-doc > docs/metrics.md";
}

}  // namespace
}  // namespace tetrion
