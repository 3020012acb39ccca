// An environment that only this test has (tests/support/snake.h), through all that a user meets:
// settings, plan of a run, vector environment, lane loop, training, eval, play and its GIF. It is
// one header, one source and the one line of registration below.

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/collect/lane_loop.h"
#include "lib/core/error.h"
#include "lib/frame/row_check.h"
#include "lib/policy/random_policy.h"
#include "lib/rl/vtrace/vtrace_trainer.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"
#include "lib/vector/vector_pool.h"
#include "tests/support/fake_lanes.h"
#include "tests/support/snake.h"
#include "tools/eval/eval.h"
#include "tools/eval/gif_writer.h"
#include "tools/up/up_options.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;
using testing::SnakeRecord;
namespace fs = std::filesystem;

const bool registered = (RegisterEnv(testing::SnakeEntry()), true);

class NewEnvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registered);
    runs_ = fs::path(::testing::TempDir()) / ("new-env-" + std::to_string(::getpid()));
    fs::remove_all(runs_);
    fs::create_directories(runs_);
  }
  void TearDown() override { fs::remove_all(runs_); }

  // A run folder of the snake with an untrained policy's checkpoint.
  void MakeRun() const {
    const RunConfig config = MakeRunConfig({{"env", "snake"}});
    const std::string folder = RunFolder::Create(runs_, "first").path();
    RunFolder::At(folder).WriteConfig(config);
    const auto trainer = MakeVtraceTrainer({.seed = 2}, EnvSpecOf(config), RowSpecOf(config));
    CheckpointStore(folder + "/checkpoints", 3)
        .Save(trainer->Save(),
              {.config_hash = RunConfigHash(config), .run = "first", .updates = 12});
  }
  std::string Output(int (*command)(const EvalOptions&, const std::atomic<bool>&, std::FILE*),
                     const EvalOptions& options) const {
    std::FILE* out = std::tmpfile();
    const std::atomic<bool> stop{false};
    EXPECT_EQ(command(options, stop, out), 0);
    std::string text(static_cast<std::size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return text;
  }
  EvalOptions Options(const char* command) const {
    return {.command = command, .run = "first", .runs_dir = runs_, .episodes = 2, .fps = 1000};
  }

  std::string runs_;
};

TEST_F(NewEnvTest, RunSettingsHaveItsPresetViewNetworkAndStepLimit) {
  const RunConfig config = MakeRunConfig({{"env", "snake"}, {"discount", "0.95"}});
  EXPECT_EQ(config.view, "cells");
  EXPECT_EQ(config.network, "mlp");
  EXPECT_EQ(config.max_steps, 300U);
  EXPECT_EQ(config.lanes, 8);
  EXPECT_EQ(config.vtrace.discount, 0.95) << "the user beats the preset";
  EXPECT_EQ(RowSpecOf(config), (RowSpec{.record_bytes = 108, .lanes = 8, .has_mask = false}));
  EXPECT_EQ(EnvSpecOf(config).action.count, 4);
  try {
    static_cast<void>(MakeRunConfig({{"env", "snake"}, {"view", "board"}}));
    ADD_FAILURE() << "a network read bytes";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown view of snake 'board': choose one of cells"));
  }
}

TEST_F(NewEnvTest, UpPlansARunOfItAndHelpNamesIt) {
  UpOptions options;
  options.runs_dir = runs_;
  options.bin_dir = "/bin-dir";
  options.given = {{"env", "snake"}};
  EXPECT_EQ(PlanRun(options, "planned", /*cores=*/4).config.lanes, 8);
  options.given = {{"env", "chess"}};
  try {
    static_cast<void>(PlanRun(options, "planned", /*cores=*/4));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("choose one of " + EnvNames()));
  }
  ServiceOptions parser("tetrion-test", "", "A program.");
  std::vector<Setting> given;
  AddRunSettings(parser, &given);
  EXPECT_THAT(parser.Help(), HasSubstr("snake 300"));
}

TEST_F(NewEnvTest, VectorEnvironmentShowsItsObservations) {
  VectorPool pool({.env = "snake", .obs = "board"}, 3, 0);
  const std::vector<int> all = {0, 1, 2};
  const std::vector<std::uint64_t> seeds = {1, 2, 3};
  ASSERT_EQ(pool.Reset(all, seeds.data()).status, PoolStatus::kOk);
  std::vector<int> ready(3);
  ASSERT_EQ(pool.Receive(ready, kNanosPerSecond), PoolStatus::kOk);
  EXPECT_EQ(pool.lanes().spec().obs.record_bytes, sizeof(SnakeRecord));
  const StepColumns& columns = pool.lanes().columns();
  ASSERT_EQ(columns.obs_bytes, 100U);
  for (std::size_t env = 0; env < 3; ++env) {
    const auto* board = reinterpret_cast<const std::uint8_t*>(&columns.obs[env * 100]);
    EXPECT_EQ(std::count(board, board + 100, 1), 2) << "body";
    EXPECT_EQ(std::count(board, board + 100, 2), 1) << "head";
    EXPECT_EQ(std::count(board, board + 100, 3), 1) << "food";
  }
  const std::vector<std::int32_t> up(3, 0);
  for (int step = 0; step < 5; ++step) {  // from the fifth row into the wall
    ASSERT_EQ(pool.Send(all, up.data()).status, PoolStatus::kOk);
    ASSERT_EQ(pool.Receive(ready, kNanosPerSecond), PoolStatus::kOk);
  }
  EXPECT_EQ(columns.terminated[0], 1);
  EXPECT_EQ(columns.reward[0], -1.0F);
}

TEST_F(NewEnvTest, LaneLoopWritesItsRows) {
  const EnvSpec spec = MakeEnvSpec({.name = "snake"});
  testing::ListTokens tokens;
  testing::VectorSink sink({.record_bytes = 108, .lanes = 2, .has_mask = false}, 1);
  testing::Recorder recorder;
  LaneLoop loop(LaneLoopConfig{.wait_timeout_ns = 1}, MakeVecEnv({.name = "snake", .lanes = 2}),
                std::make_unique<LocalDecider>(std::make_unique<RandomPolicy>(3, spec.action),
                                               /*weights=*/nullptr, 2),
                tokens, sink, recorder);
  tokens.Fill(0, 1000);
  for (int row = 0; row < 500; ++row) ASSERT_EQ(loop.RunOnce(), RunResult::kRow);
  for (std::size_t i = 0; i < sink.rows.size(); ++i) {
    ASSERT_EQ(CheckRow(sink.layout(), sink.rows[i].data(), i, spec.action.count), nullptr);
    const auto* records = reinterpret_cast<const SnakeRecord*>(sink.Row(i).record);
    for (int lane = 0; lane < 2; ++lane) {
      ASSERT_EQ(records[lane].cell[records[lane].head], records[lane].length);
    }
  }
  EXPECT_GT(recorder.episodes.size(), 10U);
}

TEST_F(NewEnvTest, EvalMeasuresATrainersPolicyOfIt) {
  MakeRun();
  const std::string text = Output(RunEval, Options("eval"));
  EXPECT_THAT(text, HasSubstr("first (snake), greedy policy, 12 updates: 2 episodes"));
  EXPECT_EQ(text.find("7-bag"), std::string::npos) << "it has no pieces: " << text;
}

TEST_F(NewEnvTest, PlayDrawsItAsTextAndAsAGif) {
  MakeRun();
  EvalOptions options = Options("play");
  options.policy = "random";
  EXPECT_THAT(Output(RunPlay, options), HasSubstr(".oo@......\n"));
  options.gif = runs_ + "/snake.gif";
  EXPECT_THAT(Output(RunPlay, options), HasSubstr("frames in " + options.gif));
  EXPECT_GT(fs::file_size(options.gif), 100U);
}

TEST_F(NewEnvTest, PictureIsTheEntrysInSizeAndColours) {
  RecordPicture picture(MakeEnvSpec({.name = "snake"}));
  EXPECT_EQ(picture.size().height, 60);
  EXPECT_EQ(picture.size().width, 60);
  const SnakeRecord snake = testing::SnakeReset(1, 2);
  const auto pixels = picture.Draw(reinterpret_cast<const std::byte*>(&snake));
  const auto colour = [&](int row, int column) {
    const auto* pixel = &pixels[static_cast<std::size_t>(3 * (60 * 6 * row + 6 * column))];
    return std::vector<int>(pixel, pixel + 3);
  };
  EXPECT_EQ(colour(4, 3), (std::vector<int>{240, 240, 0})) << "head";
  EXPECT_EQ(colour(4, 1), (std::vector<int>{0, 240, 0})) << "body";
  EXPECT_EQ(colour(0, 0), (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace tetrion
