#include "lib/setup/preset_table.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "lib/envs/registry.h"
#include "lib/run/options.h"
#include "tests/support/source_file.h"

namespace tetrion {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PresetTableTest, HasARowForEachEnvironmentAndViewWithSettingsOfItsOwn) {
  const std::string table = PresetsMarkdown();
  EXPECT_THAT(table,
              HasSubstr("| environment | view | all | `--algo vtrace` | `--algo dreamer` |"));
  for (const EnvEntry& env : Envs()) {
    const std::string of_env = "\n| " + env.name + " | ";
    EXPECT_EQ(table.find(of_env + " |") != std::string::npos, !env.preset.empty()) << env.name;
    for (const ViewEntry& view : env.views) {
      EXPECT_EQ(table.find(of_env + view.name + " |") != std::string::npos, !view.preset.empty())
          << env.name << " " << view.name;
    }
  }
}

TEST(PresetTableTest, SettingsAreOptionsInTheColumnOfTheirAlgorithm) {
  const std::string table = PresetsMarkdown();
  EXPECT_THAT(table, ContainsRegex("\n. cartpole .  . `--lanes 16` . `--discount 0.98` [^\n|]* . "
                                   "`--lanes 4` `--ring-rows 16` [^\n|]* .\n"));
  EXPECT_THAT(table, ContainsRegex("\n. tetris . drops . . [^\n|]*`--normalise-advantage` . .\n"));
  EXPECT_THAT(table, Not(HasSubstr("true")));
  EXPECT_THAT(table, Not(HasSubstr("--vtrace")));
}

TEST(PresetTableTest, DocumentationOfThePresetsIsUpToDate) {
  std::ifstream file(testing::SourceFile("docs/options.md"));
  ASSERT_TRUE(file) << "docs/options.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\n" + PresetsMarkdown() + "\n## "))
      << "run tools/up/options_doc.py --bin build/cpu/bin";
}

}  // namespace
}  // namespace tetrion
