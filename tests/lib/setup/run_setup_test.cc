#include "lib/setup/run_setup.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "tests/support/source_file.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

TEST(RunSetupTest, EverySettingOfTheEnvironmentArrives) {
  RunConfig run;
  run.env = "tetris-placement";
  run.lanes = 7;
  run.seed = 99;
  run.queue_size = 3;
  run.iid_pieces = true;
  run.board_rows = 10;
  run.spawn_above = true;
  run.reward = "lines";
  run.illegal = "noop";
  run.view = "planes";
  const EnvConfig config = EnvConfigOf(run);
  EXPECT_EQ(config.name, "tetris-placement");
  EXPECT_EQ(config.lanes, 7);
  EXPECT_EQ(config.seed, 99U);
  EXPECT_EQ(config.queue_size, 3);
  EXPECT_TRUE(config.iid_pieces);
  EXPECT_EQ(config.rows, 10);
  EXPECT_TRUE(config.spawn_above);
  EXPECT_EQ(config.reward, TetrisReward::kLines);
  EXPECT_TRUE(config.illegal_is_noop);
  EXPECT_EQ(config.view, "planes");
}

TEST(RunSetupTest, TheScorersWidthIsWholeVectors) {
  RunConfig run;
  run.scorer_units = 40;
  try {
    Resolve(run);
    FAIL() << "40 units";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("scorer_units = 40: expected a multiple of 16"));
  }
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

TEST(RunSetupTest, PresetsStandBetweenDefaultsAndTheUser) {
  const RunConfig preset = MakeRunConfig({{"env", "cartpole"}});
  EXPECT_EQ(preset.lanes, 16);
  EXPECT_EQ(preset.view, "vector");
  EXPECT_EQ(preset.network, "mlp");
  EXPECT_EQ(preset.max_steps, 500U);
  EXPECT_EQ(preset.vtrace.reuse, 8);
  EXPECT_EQ(MakeRunConfig({{"lanes", "9"}, {"env", "cartpole"}}).lanes, 9);
  EXPECT_EQ(MakeRunConfig({{"reuse", "9"}, {"env", "cartpole"}}).vtrace.reuse, 9);
  EXPECT_EQ(MakeRunConfig({}).network, "scorer");
  EXPECT_EQ(MakeRunConfig({}).max_steps, 5000U);
  EXPECT_EQ(MakeRunConfig({{"env", "tetris"}}).max_steps, 10000U);
}

TEST(RunSetupTest, PresetOfAViewStandsBetweenThatOfItsEnvironmentAndTheUser) {
  const RunConfig features = MakeRunConfig({}),
                  boards = MakeRunConfig({{"view", "afterstates-boards"}});
  EXPECT_EQ(boards.network, "columns");
  EXPECT_EQ(features.vtrace.reuse, 2);
  EXPECT_EQ(boards.vtrace.reuse, 1);
  EXPECT_EQ(features.vtrace.learning_rate, 0.001);
  EXPECT_EQ(boards.vtrace.learning_rate, 0.002);
  EXPECT_EQ(boards.vtrace.weight_decay, features.vtrace.weight_decay);
  EXPECT_EQ(MakeRunConfig({{"reuse", "3"}, {"view", "afterstates-boards"}}).vtrace.reuse, 3);
  const RunConfig drops = MakeRunConfig({{"env", "tetris"}, {"view", "drops"}});
  EXPECT_EQ(drops.network, "scorer");
  EXPECT_EQ(drops.vtrace.discount, 0.998);
  EXPECT_EQ(drops.vtrace.reward_scale, "symlog");
}

TEST(RunSetupTest, PresetsOfAnAlgorithmCountInItsRunsAlsoForCommonSettings) {
  const RunConfig preset = MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}});
  EXPECT_EQ(preset.lanes, 4);
  EXPECT_EQ(preset.window, 32);
  EXPECT_EQ(preset.batch_windows, 8);
  EXPECT_EQ(preset.dreamer.train_ratio, 128);
  EXPECT_EQ(MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}, {"lanes", "9"}}).lanes, 9);
  EXPECT_EQ(MakeRunConfig({{"env", "cartpole"}}).window, 32);
}

std::string RefusalOf(const std::vector<Setting>& given) {
  try {
    static_cast<void>(MakeRunConfig(given));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
  return "";
}

TEST(RunSetupTest, UnknownEnvironmentIsRefusedWithTheNamesThereAreWhateverElseIsGiven) {
  const auto refusal =
      HasSubstr("environment 'chess': choose one of tetris, tetris-placement, cartpole");
  EXPECT_THAT(RefusalOf({{"env", "chess"}}), refusal);
  EXPECT_THAT(RefusalOf({{"env", "chess"}, {"max_steps", "40"}, {"view", "board"}}), refusal);
}

TEST(RunSetupTest, NetworkThatCannotReadTheViewIsRefusedWithBoth) {
  EXPECT_THAT(RefusalOf({{"env", "cartpole"}, {"network", "scorer"}}),
              HasSubstr("scorer does not read view vector of cartpole: choose --network mlp"));
  EXPECT_THAT(RefusalOf({{"network", "conv"}}),
              HasSubstr("choose --network scorer or --view planes"));
  EXPECT_EQ(RefusalOf({{"network", "conv"}, {"view", "planes"}}), "");
}

TEST(RunSetupTest, SettingsOfANetworkThatTheRunHasNotAreRefused) {
  EXPECT_THAT(RefusalOf({{"env", "cartpole"}, {"scorer_units", "32"}}),
              HasSubstr("scorer_units = 32: network mlp has no use for it"));
  EXPECT_EQ(RefusalOf({{"scorer_units", "32"}}), "");
  const Setting dreamer = {"algo", "dreamer"}, cartpole = {"env", "cartpole"};
  EXPECT_THAT(RefusalOf({dreamer, cartpole, {"network", "mlp"}}),
              HasSubstr("network = mlp: DreamerV3's networks follow from size and view"));
  EXPECT_THAT(RefusalOf({dreamer, cartpole, {"scorer_units", "32"}}), HasSubstr("scorer_units"));
  EXPECT_EQ(RefusalOf({dreamer, cartpole, {"network", "auto"}}), "");
}

TEST(RunSetupTest, RoundedFactorsAreForNetworksScorerAndColumns) {
  EXPECT_EQ(RefusalOf({{"precision", "bf16"}}), "");
  EXPECT_EQ(RefusalOf({{"precision", "bf16"}, {"view", "afterstates-boards"}}), "");
  EXPECT_EQ(RefusalOf({{"precision", "f32"}, {"env", "cartpole"}}), "");
  EXPECT_THAT(RefusalOf({{"precision", "bf16"}, {"env", "cartpole"}}),
              HasSubstr("precision = bf16 is for V-trace with network scorer or columns, and this "
                        "run has algo vtrace and network mlp"));
  EXPECT_THAT(RefusalOf({{"precision", "bf16"}, {"algo", "dreamer"}}), HasSubstr("algo dreamer"));
}

TEST(RunSetupTest, SettingsThatTheEnvironmentHasNoUseForAreRefusedUnlessTheyAreTheDefaults) {
  const auto refusal = [](const std::vector<Setting>& given) -> std::string {
    try {
      (void)MakeRunConfig(given);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
  };
  const std::vector<Setting> of_tetris = {{"queue_size", "3"},     {"iid_pieces", "true"},
                                          {"board_rows", "7"},     {"reward", "lines"},
                                          {"spawn_above", "true"}, {"illegal", "noop"}};
  for (const Setting& setting : of_tetris) {
    EXPECT_THAT(refusal({{"env", "cartpole"}, setting}),
                HasSubstr("run setting " + setting.key + " = " + setting.value +
                          ": environment cartpole has no use for it"));
    EXPECT_EQ(refusal({setting}), "");
  }
  EXPECT_THAT(refusal({{"env", "tetris"}, {"illegal", "noop"}}),
              HasSubstr("leave it out, or choose --env tetris-placement"));
  EXPECT_EQ(refusal({{"env", "cartpole"}, {"board_rows", "20"}, {"iid_pieces", "false"}}), "");
}

// Also one that was begun when such settings were kept.
TEST(RunSetupTest, RunThatHasSuchSettingsMayGoOn) {
  RunConfig config = MakeRunConfig({{"env", "cartpole"}});
  config.board_rows = 7;
  EXPECT_EQ(ChangeOnResume({{"learning_rate", "0.5"}}, config).size(), 1U);
}

TEST(RunSetupTest, UnknownViewIsRefusedWithThoseThatNetworksRead) {
  EXPECT_THAT(RefusalOf({{"env", "tetris"}, {"view", "packed2"}}),
              HasSubstr("unknown view of tetris 'packed2': choose one of flat, planes, pixels"));
}

TEST(RunSetupTest, SettingsOfAResumeAreResolvedAnew) {
  const RunConfig before = MakeRunConfig({{"env", "cartpole"}});
  RunConfig config = before;
  EXPECT_TRUE(
      ChangeOnResume({{"lanes", "16"}, {"view", "auto"}, {"max_steps", "0"}}, config).empty());
  EXPECT_EQ(config, before);
  try {
    static_cast<void>(ChangeOnResume({{"minibatches", "3"}}, config));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("minibatches = 3"));
  }
}

TEST(RunSetupTest, ResolvingTwiceChangesNothing) {
  RunConfig config = MakeRunConfig({{"env", "tetris"}, {"window", "7"}});
  const RunConfig once = config;
  Resolve(config);
  EXPECT_EQ(config, once);
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

TEST(RunSetupTest, DocumentationOfTheRunSettingsIsUpToDate) {
  std::ifstream file(testing::SourceFile("docs/options.md"));
  ASSERT_TRUE(file) << "docs/options.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  ServiceOptions options("tetrion-test", "", "A program.");
  std::vector<Setting> given;
  AddRunSettings(options, &given);
  EXPECT_THAT(text.str(), HasSubstr(options.RunMarkdown()))
      << "run tools/up/options_doc.py --bin build/cpu/bin";
  EXPECT_THAT(options.RunMarkdown(), HasSubstr("environment: tetris, tetris-placement, cartpole"));
}

}  // namespace
}  // namespace tetrion
