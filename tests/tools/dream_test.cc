// tools/eval: what a world model imagines, measured and drawn; what users see when it cannot be.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/rl/dreamer/dreamer_trainer.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"
#include "tools/eval/canvas.h"
#include "tools/eval/dream.h"
#include "tools/eval/dream_picture.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;

int Count(std::span<const std::uint8_t> pixels, std::uint8_t colour) {
  return static_cast<int>(std::count(pixels.begin(), pixels.end(), colour));
}

TEST(CanvasTest, RampsEndAtTheirColoursAndTakeAnyNumber) {
  const auto palette = Canvas::Palette();
  EXPECT_LE(palette.size(), 256U);
  const auto light = [&palette](std::uint8_t at) { return int{palette[at].green}; };
  EXPECT_EQ(light(Canvas::Grey(0)), 0);
  EXPECT_EQ(light(Canvas::Grey(1)), 255);
  EXPECT_EQ(Canvas::Grey(-5), Canvas::Grey(0));
  EXPECT_EQ(Canvas::Grey(5), Canvas::Grey(1));
  EXPECT_EQ(Canvas::Grey(std::nanf("")), Canvas::Grey(0));
  EXPECT_EQ(palette[Canvas::Difference(1)].red, 255);
  EXPECT_EQ(palette[Canvas::Difference(-1)].blue, 255);
  EXPECT_EQ(palette[Canvas::Difference(0)].red + palette[Canvas::Difference(0)].blue, 0);
  EXPECT_EQ(Canvas::Difference(std::nanf("")), Canvas::Difference(1)) << "it is to be seen";
  EXPECT_LT(std::size_t{Canvas::Difference(1)}, palette.size());
}

TEST(CanvasTest, DrawsInsideOnly) {
  Canvas canvas({.height = 20, .width = 30});
  canvas.Box(-5, -5, 10, 10, Canvas::kReal);
  EXPECT_EQ(Count(canvas.pixels(), Canvas::kReal), 25);
  canvas.Clear();
  canvas.Line(-10, 10, 40, 10, Canvas::kWhite);
  EXPECT_EQ(Count(canvas.pixels(), Canvas::kWhite), 30);
  canvas.Clear();
  canvas.Frame(1, 1, 4, 4, Canvas::kDim);
  EXPECT_EQ(Count(canvas.pixels(), Canvas::kDim), 12);
  canvas.Clear();
  canvas.Text(0, 0, "1~L", Canvas::kWhite);  // 8 and 7 dots of 2 x 2 pixels; ~ is a space
  EXPECT_EQ(Count(canvas.pixels(), Canvas::kWhite), 4 * (8 + 7));
}

// Rows of `floats` numbers: row r is r everywhere, and imagined as `off` more.
DreamtEpisode Ramp(DreamerInput input, int rows, int floats, float off) {
  DreamtEpisode episode;
  episode.input = input;
  episode.rows = rows;
  episode.floats = floats;
  episode.context = 2;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < floats; ++i) {
      episode.real.push_back(static_cast<float>(row));
      episode.dreamt.view.push_back(static_cast<float>(row) + off);
    }
  }
  MeasureDream(episode);
  return episode;
}

TEST(DreamPictureTest, ErrorsAreMeansAndThoseOfTheLastRowSeen) {
  const DreamtEpisode episode = Ramp(DreamerInput::kVector, 5, 3, -0.5F);
  EXPECT_EQ(episode.error, std::vector<float>(5, 0.5F));
  EXPECT_EQ(episode.still, (std::vector<float>{1, 0, 1, 2, 3}));
}

TEST(DreamPictureTest, ChartsGrowFromRowToRow) {
  const DreamtEpisode episode = Ramp(DreamerInput::kVector, 5, 3, 0.25F);
  DreamPicture picture(episode);
  int real = 0, dreamt = 0;
  for (int row = 1; row < episode.rows; ++row) {
    const auto pixels = picture.Draw(row);
    EXPECT_GT(Count(pixels, Canvas::kReal), real);
    EXPECT_GT(Count(pixels, Canvas::kDreamt), dreamt);
    real = Count(pixels, Canvas::kReal);
    dreamt = Count(pixels, Canvas::kDreamt);
  }
}

TEST(DreamPictureTest, ManyNumbersHaveTheChartsOfThoseThatVary) {
  DreamtEpisode episode = Ramp(DreamerInput::kVector, 4, 600, 0);
  DreamPicture all_vary(episode);
  EXPECT_LT(all_vary.size().height, 2000);
  std::fill(episode.real.begin(), episode.real.end(), 0.0F);
  for (std::size_t row = 0; row < 4; ++row) episode.real[row * 600 + 599] = static_cast<float>(row);
  episode.dreamt.view = episode.real;
  MeasureDream(episode);
  DreamPicture one_varies(episode);
  EXPECT_EQ(one_varies.size().height, all_vary.size().height);
  const auto pixels = one_varies.Draw(3);
  EXPECT_GT(std::set<std::uint8_t>(pixels.begin(), pixels.end()).count(Canvas::kDreamt), 0U);
}

TEST(DreamPictureTest, PanelsShowWhatWasWhatWasImaginedAndTheDifference) {
  for (const auto& [input, floats] :
       {std::pair{DreamerInput::kPlanes, 448}, std::pair{DreamerInput::kPlanes, 30},
        std::pair{DreamerInput::kPixels, 72 * 80}}) {
    DreamtEpisode episode = Ramp(input, 3, floats, 0);
    const auto numbers = static_cast<std::size_t>(floats);
    std::fill(episode.real.begin(), episode.real.end(), 0.0F);
    std::fill(episode.dreamt.view.begin(), episode.dreamt.view.end(), 0.0F);
    episode.real[2 * numbers + 7] = 1;
    episode.dreamt.view[2 * numbers + 7] = 0.5F;
    episode.dreamt.view[2 * numbers + 9] = 0.25F;
    MeasureDream(episode);
    DreamPicture picture(episode);
    const auto cell = [&picture](std::uint8_t colour) { return Count(picture.Draw(2), colour); };
    const int pixels = cell(Canvas::Grey(1));
    EXPECT_GT(pixels, 0);
    EXPECT_EQ(cell(Canvas::Grey(0.5F)), pixels);
    EXPECT_EQ(cell(Canvas::Grey(0.25F)), pixels);
    EXPECT_EQ(cell(Canvas::Difference(-0.5F)), pixels);
    EXPECT_EQ(cell(Canvas::Difference(0.25F)), pixels);
  }
}

// A run folder of DreamerV3 with a new model's checkpoint.
class DreamRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runs_ = fs::path(::testing::TempDir()) / ("dream-runs-" + std::to_string(::getpid()));
    fs::remove_all(runs_);
    fs::create_directories(runs_);
    config_.env = "cartpole";
    config_.algo = "dreamer";
  }
  void TearDown() override { fs::remove_all(runs_); }

  std::string MakeRun() {
    Resolve(config_);
    const std::string folder = RunFolder::Create(runs_, "first").path();
    RunFolder::At(folder).WriteConfig(config_);
    return folder;
  }
  void SaveCheckpoint(const std::string& folder, const DreamerSettings& settings) {
    const auto trainer = MakeDreamerTrainer({.settings = settings, .seed = 2}, EnvSpecOf(config_));
    CheckpointStore(folder + "/checkpoints", 3)
        .Save(trainer->Save(), {.run = "first", .updates = 12});
  }
  EvalOptions Options() const {
    return {.command = "dream", .run = "first", .runs_dir = runs_, .steps = 6, .context = 3};
  }
  // What `dream` printed, or the sentence that it failed with.
  std::string Output(const EvalOptions& options) {
    std::FILE* out = std::tmpfile();
    const std::atomic<bool> stop{stop_};
    std::string error;
    try {
      EXPECT_EQ(RunDream(options, stop, out), 0);
    } catch (const Error& failure) {
      error = failure.what();
    }
    std::string text(static_cast<std::size_t>(std::ftell(out)), '\0');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return error.empty() ? text : error;
  }

  fs::path runs_;
  RunConfig config_;
  bool stop_ = false;
};

TEST_F(DreamRunTest, PrintsEveryRowAndWritesTheGif) {
  for (const auto& [env, view] : {std::pair{"cartpole", "auto"}, std::pair{"tetris", "planes"}}) {
    config_ = {};
    config_.env = env;
    config_.view = view;
    config_.algo = "dreamer";
    const std::string folder = MakeRun();
    SaveCheckpoint(folder, config_.dreamer);
    EvalOptions options = Options();
    options.gif = (runs_ / "dream.gif").string();
    const std::string text = Output(options);
    EXPECT_NE(text.find("12 updates: 7 rows, the first 3 seen"), std::string::npos) << text;
    EXPECT_NE(text.find("\n     2  seen "), std::string::npos) << text;
    EXPECT_NE(text.find("\n     3  imagined "), std::string::npos) << text;
    EXPECT_NE(text.find("\n     6  imagined "), std::string::npos) << text;
    EXPECT_NE(text.find("mean error of a number: "), std::string::npos) << text;
    EXPECT_NE(text.find("7 frames in " + options.gif), std::string::npos) << text;
    EXPECT_GT(fs::file_size(options.gif), 1000U);
    EXPECT_EQ(Output(options), text) << "the same seed, the same dream";
    fs::remove_all(folder);
  }
}

// What is shown is what returns multiply, wherever the discount is.
TEST_F(DreamRunTest, TheChanceToGoOnHasTheDiscountThatTheHeadLacks) {
  for (const auto& [discount_in, shown] :
       {std::pair{"head", "  1.000\n"}, std::pair{"returns", "  0.750\n"}}) {
    config_.dreamer.discount_in = discount_in;
    config_.dreamer.continue_horizon = 4;
    const std::string folder = MakeRun();
    const auto trainer =
        MakeDreamerTrainer({.settings = config_.dreamer, .seed = 2}, EnvSpecOf(config_));
    TrainerState state = trainer->Save();
    for (TrainerState::Tensor& tensor : state.tensors) {
      if (tensor.name == "model.continue.out.bias") tensor.data = {60};  // the head is certain
    }
    CheckpointStore(folder + "/checkpoints", 3).Save(state, {.run = "first", .updates = 12});
    const std::string text = Output(Options());
    std::size_t rows = 0;
    for (std::size_t at = text.find(shown); at != std::string::npos;
         at = text.find(shown, at + 1)) {
      ++rows;
    }
    EXPECT_EQ(rows, 7U) << text;
    fs::remove_all(folder);
  }
}

TEST_F(DreamRunTest, UnusableRunsAndOptionsGetOneSentenceEach) {
  const auto refused = [this](const EvalOptions& options, const std::string& sentence) {
    const std::string error = Output(options);
    EXPECT_NE(error.find(sentence), std::string::npos) << error;
  };
  const std::string folder = MakeRun();
  refused(Options(), "run first has no checkpoint");
  SaveCheckpoint(folder, {.size = "1m"});
  refused(Options(), "DreamerV3 of size nano of this run needs");
  SaveCheckpoint(folder, config_.dreamer);
  EvalOptions options = Options();
  options.context = 7;
  refused(options, "has 7 rows, of which --context 7 leaves none");
  options = Options();
  options.gif = (runs_ / "no" / "folder.gif").string();
  refused(options, "no/folder.gif: No such file or directory");
  options = Options();
  options.run = "nowhere";
  refused(options, "nowhere");
  stop_ = true;
  refused(Options(), "interrupted");
  stop_ = false;
  config_ = {};
  config_.env = "cartpole";
  fs::remove_all(folder);
  MakeRun();
  refused(Options(), "trained by vtrace, which has no world model");
}

}  // namespace
}  // namespace tetrion
