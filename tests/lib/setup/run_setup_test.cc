#include "lib/setup/run_setup.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <sstream>
#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

TEST(RunSetupTest, EverySettingOfTheEnvironmentArrives) {
  RunConfig run;
  run.env = "tetris-placement";
  run.lanes = 7;
  run.seed = 99;
  run.queue_size = 3;
  run.iid_pieces = true;
  run.illegal = "noop";
  run.view = "planes";
  const EnvConfig config = EnvConfigOf(run);
  EXPECT_EQ(config.name, "tetris-placement");
  EXPECT_EQ(config.lanes, 7);
  EXPECT_EQ(config.seed, 99U);
  EXPECT_EQ(config.queue_size, 3);
  EXPECT_TRUE(config.iid_pieces);
  EXPECT_TRUE(config.illegal_is_noop);
  EXPECT_EQ(config.view, "planes");
}

TEST(RunSetupTest, RowsHaveTheEnvironmentsRecordAndMask) {
  RunConfig run;
  run.env = "cartpole";
  run.lanes = 16;
  EXPECT_EQ(RowSpecOf(run), (RowSpec{.record_bytes = 16, .lanes = 16, .has_mask = false}));
  run.env = "tetris-placement";
  EXPECT_EQ(RowSpecOf(run), (RowSpec{.record_bytes = 64, .lanes = 16, .has_mask = true}));
  EXPECT_EQ(EnvSpecOf(run).obs.view, "afterstates");
}

// lib/run keeps each environment's default view and step limit: for exactly those of the registry.
TEST(RunSetupTest, SettingsAndRegistryKnowTheSameEnvironments) {
  const auto names = [](const std::function<void()>& refused) {
    try {
      refused();
    } catch (const Error& error) {
      const std::string text = error.what();
      std::istringstream list(text.substr(text.find("one of ") + 7));
      std::set<std::string> known;
      for (std::string name; std::getline(list >> std::ws, name, ',');) known.insert(name);
      return known;
    }
    return std::set<std::string>();
  };
  const auto known = names([] { MakeRunConfig({{"env", "pong"}}); });
  EXPECT_FALSE(known.empty());
  EXPECT_EQ(known, names([] { EnvSpecOf({.env = "pong"}); }));
  for (const std::string& env : known) {
    EXPECT_EQ(EnvSpecOf(MakeRunConfig({{"env", env}})).obs.view, EnvSpecOf({.env = env}).obs.view);
  }
}

TEST(RunSetupTest, UnknownEnvironmentIsAUsageErrorThatNamesIt) {
  RunConfig run;
  run.env = "pong";
  try {
    EnvSpecOf(run);
    FAIL() << "an unknown environment must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("pong"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
