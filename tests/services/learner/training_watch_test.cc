#include "services/learner/training_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "tests/lib/shm/scratch_dir.h"
#include "tests/services/learner/fake_trainer.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kActions = 40;  // the largest entropy is 3.69 nats

class TrainingWatchTest : public ::testing::Test {
 protected:
  TrainingWatchTest() { SetUpLogging({.service = "test", .file = log_}); }
  ~TrainingWatchTest() override { SetUpLogging({.service = "test"}); }

  // What looking at `stats` so many times writes into the log.
  std::string Said(const UpdateStats& stats, int times = 1) {
    const auto before = static_cast<std::streamoff>(std::filesystem::file_size(log_));
    for (int i = 0; i < times; ++i) watch_.Look(stats);
    std::ifstream log(log_);
    log.seekg(before);
    return {std::istreambuf_iterator<char>(log), {}};
  }
  static UpdateStats Good(double entropy = 1.0, double explained = 0.5) {
    UpdateStats stats = {.status = BatchStatus::kReady, .updates = 2};
    Figure(stats, "value_loss") = 1.0;
    Figure(stats, "entropy") = entropy;
    Figure(stats, "explained_variance") = explained;
    Figure(stats, "target_square") = 100.0;
    return stats;
  }
  static UpdateStats Skipped(const std::string& problem, int updates = 0) {
    return {.status = BatchStatus::kReady, .updates = updates, .skipped = 1, .problem = problem};
  }

  const ScratchDir dir_;
  const std::string log_ = dir_.path() + "/log";
  FakeClock clock_;
  TrainingWatch watch_{{.largest = std::log(double{kActions})}, kFakeFigures, clock_};
};

TEST_F(TrainingWatchTest, HealthyTrainingIsNotMentioned) {
  EXPECT_EQ(Said(Good(), 1000), "");
}

TEST_F(TrainingWatchTest, SkippedUpdatesAreSaidOnceAMinute) {
  const std::string first = Said(Skipped("the loss"));
  EXPECT_THAT(first, HasSubstr("the loss is not a finite number"));
  EXPECT_EQ(Said(Skipped("the loss"), 10), "");
  clock_.AdvanceNs(TrainingWatch::kWarnEveryNs);
  EXPECT_THAT(Said(Skipped("a reward")), HasSubstr("12 skipped so far"));
}

TEST_F(TrainingWatchTest, TrainingEndsWhenNothingCanBeLearntAndNamesTheFirstProblem) {
  (void)Said(Skipped("the gradient of score.2.weight"));
  (void)Said(Skipped("the loss"), TrainingWatch::kMostSkippedInARow - 2);
  const Error error = ErrorOf([&] { watch_.Look(Skipped("the loss")); });
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_THAT(error.what(), HasSubstr("score.2.weight"));
  EXPECT_THAT(error.what(), HasSubstr("--learning-rate"));
}

TEST_F(TrainingWatchTest, BatchThatGaveAnUpdateStartsTheCountAnew) {
  for (int round = 0; round < 3; ++round) {
    (void)Said(Skipped("the loss"), TrainingWatch::kMostSkippedInARow - 1);
    watch_.Look(round == 0 ? Good() : Skipped("the loss", /*updates=*/1));
  }
}

TEST_F(TrainingWatchTest, BatchWithoutARowToTrainLeavesTheCountAsItIs) {
  (void)Said(Skipped("the loss"), TrainingWatch::kMostSkippedInARow - 1);
  watch_.Look({.status = BatchStatus::kReady});
  EXPECT_EQ(ErrorOf([&] { watch_.Look(Skipped("the loss")); }).code(), ExitCode::kConfig);
}

TEST_F(TrainingWatchTest, EntropyUnderAHundredthOfTheLargestIsAWarning) {
  EXPECT_EQ(Said(Good(0.037), TrainingWatch::kAveraged), "");
  EXPECT_EQ(Said(Good(0.036), TrainingWatch::kAveraged - 1), "");
  const std::string said = Said(Good(0.036));
  EXPECT_THAT(said, HasSubstr("entropy is 0.0360"));
  EXPECT_THAT(said, HasSubstr("--entropy-coef"));
  EXPECT_THAT(said, Not(HasSubstr("explained")));
  EXPECT_EQ(Said(Good(0.036), TrainingWatch::kAveraged), "");  // not again within the minute
}

// Of two actions with a hundredth drawn from both alike: the least entropy is 0.0315 nats.
TEST_F(TrainingWatchTest, EntropyIsJudgedFromTheLeastThatThereCanBe) {
  const double least = 0.0315, step = 0.01 * (std::log(2.0) - least);
  for (const auto& [entropy, warns] :
       {std::pair{least, true}, {least + 0.9 * step, true}, {least + 1.1 * step, false}}) {
    TrainingWatch watch({.least = least, .largest = std::log(2.0)}, kFakeFigures, clock_);
    const auto before = std::filesystem::file_size(log_);
    for (int i = 0; i < TrainingWatch::kAveraged; ++i) watch.Look(Good(entropy));
    EXPECT_EQ(std::filesystem::file_size(log_) > before, warns) << entropy;
  }
}

TEST_F(TrainingWatchTest, NegativeExplainedVarianceIsAWarningWhenItLasts) {
  constexpr int kHalf = TrainingWatch::kAveraged / 2;
  EXPECT_EQ(Said(Good(1.0, -5.0), kHalf) + Said(Good(), kHalf), "");
  EXPECT_EQ(Said(Good(1.0, -5.0), kHalf + 1), "");
  EXPECT_THAT(Said(Good(), kHalf - 1), HasSubstr("below 0 in 101 of 200 batches"));
}

// As in CartPole when every game reaches its limit: each state is worth the same.
TEST_F(TrainingWatchTest, TargetsThatHardlyDifferNeedNotBeExplained) {
  UpdateStats stats = Good(1.0, -5.0);
  Figure(stats, "target_square") = 2500;
  EXPECT_EQ(Said(stats, 2 * TrainingWatch::kAveraged), "");
}

// The figures of a batch without an update are not the training's.
TEST_F(TrainingWatchTest, SkippedBatchesDoNotEnterTheAverages) {
  UpdateStats skipped = Skipped("the loss");
  Figure(skipped, "explained_variance") = std::numeric_limits<double>::quiet_NaN();
  (void)Said(skipped, 50);
  EXPECT_EQ(Said(Good(), TrainingWatch::kAveraged), "");
  EXPECT_THAT(Said(Good(1.0, -1.0), TrainingWatch::kAveraged), HasSubstr("below 0 in 200 of 200"));
}

// A trainer without these figures is only watched for what is skipped.
TEST_F(TrainingWatchTest, FiguresThatATrainerDoesNotReportAreNotJudged) {
  TrainingWatch watch({.largest = std::log(double{kActions})}, {}, clock_);
  const auto before = std::filesystem::file_size(log_);
  for (int i = 0; i < 2 * TrainingWatch::kAveraged; ++i) watch.Look(Good(0, -5.0));
  EXPECT_EQ(std::filesystem::file_size(log_), before);
}

// As DreamerV3's, which is in nats.
TEST_F(TrainingWatchTest, ValueLossWithoutTheTargetsSquareIsNotTakenForAnError) {
  constexpr FigureInfo kFigures[] = {{.name = "value_loss", .unit = "nats"},
                                     {.name = "explained_variance", .unit = "ratio"}};
  TrainingWatch watch({.largest = std::log(double{kActions})}, kFigures, clock_);
  UpdateStats stats = {.status = BatchStatus::kReady, .updates = 1};
  stats.figures[0] = 5.0;
  stats.figures[1] = -5.0;
  const auto before = std::filesystem::file_size(log_);
  for (int i = 0; i < 2 * TrainingWatch::kAveraged; ++i) watch.Look(stats);
  EXPECT_EQ(std::filesystem::file_size(log_), before);
}

}  // namespace
}  // namespace tetrion::learner
