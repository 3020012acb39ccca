#include "lib/setup/init_from.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "lib/core/error.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

class LoadInitialTest : public ::testing::Test {
 protected:
  LoadInitialTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "tetrion-init-XXXXXX";
    runs_ = mkdtemp(pattern.data());
    RunFolder::Create(runs_, "old").WriteConfig(run_);
  }
  ~LoadInitialTest() override { std::filesystem::remove_all(runs_); }

  // A checkpoint of the old run whose one parameter is `weight`.
  void Save(float weight, std::int64_t updates, double mean_return) const {
    CheckpointStore(RunFolder::At(runs_ + "/old").checkpoints(), 3)
        .Save({.tensors = {{"policy.w", {1}, {weight}}, {"adam_m.w", {1}, {7}}},
               .counters = {{"updates", updates}}},
              {.run = "old", .updates = updates, .mean_return = mean_return});
  }
  float Weight(const std::string& from) const {
    return LoadInitial(runs_, from, run_).state.tensors.at(0).data.at(0);
  }
  std::string Refusal(const std::string& from, const RunConfig& run) const {
    try {
      (void)LoadInitial(runs_, from, run);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "";
  }

  const RunConfig run_ = MakeRunConfig({{"env", "cartpole"}});
  std::string runs_;
};

TEST_F(LoadInitialTest, RunOfAnotherAlgorithmOrSizeIsRefused) {
  Save(1, 10, 1);
  RunConfig run = run_;
  run.algo = "dreamer";
  EXPECT_NE(Refusal("old", run).find("has network mlp over"), std::string::npos);
  EXPECT_NE(Refusal("old", run).find("has DreamerV3 of size nano with norm rms over"),
            std::string::npos);
  RunFolder::Create(runs_, "dreams").WriteConfig(run);
  run.dreamer.size = "1m";
  EXPECT_NE(Refusal("dreams", run).find("size nano with"), std::string::npos);
  run.dreamer.size = "nano";
  run.dreamer.norm = "layer";
  EXPECT_NE(Refusal("dreams", run).find("with norm rms over"), std::string::npos);
}

TEST_F(LoadInitialTest, NewestOrBestCheckpointOfARunIsTakenByNameOrPath) {
  Save(1, 10, /*mean_return=*/99);
  Save(2, 20, /*mean_return=*/50);
  EXPECT_EQ(Weight("old"), 2);
  EXPECT_EQ(Weight("latest"), 2);
  EXPECT_EQ(Weight("old/newest"), 2);
  EXPECT_EQ(Weight("old/best"), 1);
  EXPECT_EQ(Weight(runs_ + "/old"), 2);
  EXPECT_EQ(Weight(runs_ + "/old/best"), 1);
}

TEST_F(LoadInitialTest, SettingsOfLearningMayDifferButNotTheNetworksShape) {
  Save(1, 10, 0);
  EXPECT_EQ(
      Refusal("old",
              MakeRunConfig(
                  {{"env", "cartpole"}, {"lanes", "3"}, {"seed", "9"}, {"learning_rate", "0.5"}})),
      "");
  const std::string refusal = Refusal("old", MakeRunConfig({}));
  EXPECT_NE(refusal.find("old has network mlp over view vector of 4 numbers, 2 actions"),
            std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find(
                "the new run has network scorer of 64 units over view afterstates of 688 numbers"),
            std::string::npos)
      << refusal;
}

TEST_F(LoadInitialTest, ScorerOfAnotherWidthIsRefused) {
  RunFolder::Create(runs_, "narrow").WriteConfig(MakeRunConfig({{"scorer_units", "32"}}));
  const std::string refusal = Refusal("narrow", MakeRunConfig({}));
  EXPECT_NE(refusal.find("has network scorer of 32 units over"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("--network and --scorer-units of the other"), std::string::npos)
      << refusal;
}

TEST_F(LoadInitialTest, RunsWithoutUsableWeightsAreRefused) {
  EXPECT_NE(Refusal("nowhere", run_).find("no run at"), std::string::npos);
  const std::string mistyped = Refusal("old/bestt", run_);
  EXPECT_NE(mistyped.find("--init-from old/bestt: no run at"), std::string::npos) << mistyped;
  EXPECT_NE(mistyped.find("RUN/newest or RUN/best"), std::string::npos) << mistyped;
  EXPECT_NE(Refusal("old", run_).find("no checkpoint yet"), std::string::npos);
  Save(1, 10, 99);
  Save(std::nanf(""), 20, 0);
  EXPECT_NE(Refusal("old", run_).find("holds NaN or infinity: try old/best"), std::string::npos);
  EXPECT_EQ(Weight("old/best"), 1);
}

TEST(BegunWithTest, NoAlgorithmsOptimiserIsTakenOver) {
  const TrainerState fresh = {.tensors = {{"model.w", {1}, {0}},
                                          {"laprop_mean.w", {1}, {0}},
                                          {"laprop_square.w", {1}, {0}}}};
  const TrainerState old = {.tensors = {{"model.w", {1}, {3}},
                                        {"laprop_mean.w", {1}, {4}},
                                        {"laprop_square.w", {1}, {5}}}};
  const TrainerState begun = BegunWith(fresh, old);
  EXPECT_EQ(begun.tensors.at(0).data.at(0), 3);
  EXPECT_EQ(begun.tensors.at(1).data.at(0), 0);
  EXPECT_EQ(begun.tensors.at(2).data.at(0), 0);
}

TEST(BegunWithTest, ParametersAreTakenOverOptimiserAndCountersStayFresh) {
  const TrainerState fresh = {
      .tensors = {{"policy.w", {1}, {0}}, {"adam_m.w", {1}, {0}}, {"policy.new", {1}, {5}}},
      .counters = {{"updates", 0}}};
  const TrainerState old = {
      .tensors = {{"adam_m.w", {1}, {7}}, {"policy.w", {2}, {3, 4}}, {"policy.gone", {1}, {6}}},
      .counters = {{"updates", 20}}};
  const TrainerState begun = BegunWith(fresh, old);
  ASSERT_EQ(begun.tensors.size(), 3U);
  EXPECT_EQ(begun.tensors[0].data, (std::vector<float>{3, 4}));
  EXPECT_EQ(begun.tensors[0].shape, std::vector<std::int64_t>{2}) << "for the trainer to refuse";
  EXPECT_EQ(begun.tensors[1].data, std::vector<float>{0});
  EXPECT_EQ(begun.tensors[2].data, std::vector<float>{5});
  EXPECT_EQ(begun.counters.at("updates"), 0);
}

TEST(BegunWithTest, TrainingGoesOnFromWhatPlaysInARunThatKeepsNoMean) {
  const TrainerState fresh = {.tensors = {{"policy.w", {1}, {0}}, {"trained.w", {1}, {0}}}};
  const TrainerState begun = BegunWith(fresh, {.tensors = {{"policy.w", {1}, {3}}}});
  ASSERT_EQ(begun.tensors.size(), 2U);
  EXPECT_EQ(begun.tensors[0].data, std::vector<float>{3});
  EXPECT_EQ(begun.tensors[1].name, "trained.w");
  EXPECT_EQ(begun.tensors[1].data, std::vector<float>{3});
  const TrainerState both =
      BegunWith(fresh, {.tensors = {{"policy.w", {1}, {3}}, {"trained.w", {1}, {4}}}});
  EXPECT_EQ(both.tensors[0].data, std::vector<float>{3});
  EXPECT_EQ(both.tensors[1].data, std::vector<float>{4});
  const TrainerState without =
      BegunWith({.tensors = {{"policy.w", {1}, {0}}}}, {.tensors = both.tensors});
  ASSERT_EQ(without.tensors.size(), 1U);
  EXPECT_EQ(without.tensors[0].data, std::vector<float>{3});
}

}  // namespace
}  // namespace tetrion
