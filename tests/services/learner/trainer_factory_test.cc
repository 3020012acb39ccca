// What `up` and the coordinator accept of a run's settings, a trainer can be made of, and what no
// trainer can be made of they refuse.
#include "services/learner/trainer_factory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lib/checkpoint/state.h"
#include "lib/core/error.h"
#include "lib/nn/dense_kernels.h"
#include "lib/nn/network.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_rows.h"
#include "lib/replay/selectors/fifo.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"

namespace tetrion::learner {
namespace {

bool IsAccepted(const std::vector<Setting>& given) {
  try {
    static_cast<void>(EnvSpecOf(MakeRunConfig(given)));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// From the settings as they stand, without the checks of MakeRunConfig.
bool CanBeTrained(const std::vector<Setting>& given) {
  try {
    RunConfig run;
    run.window = 32;
    run.batch_windows = 1;
    for (const Setting& setting : given) Apply(setting, run);
    return MakeTrainer(run, RowSpecOf(run), /*threads=*/1) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

TEST(TrainerFactoryTest, ARunsScorerIsUsuallyAsWideAsTheNetwork) {
  EXPECT_EQ(RunConfig().scorer_units, kScorerUnits);
  EXPECT_FALSE(IsAccepted({{"scorer_units", "40"}}));
  EXPECT_TRUE(IsAccepted({{"scorer_units", "48"}}));
}

TEST(TrainerFactoryTest, SettingsAreAcceptedExactlyWhenATrainerCanBeMadeOfThem) {
  for (const char* env : {"cartpole", "tetris", "tetris-placement", "chess"}) {
    for (const char* view : {"auto", "vector", "planes", "afterstates", "flat"}) {
      for (const char* network : {"auto", "mlp", "conv", "scorer"}) {
        const std::vector<Setting> given = {
            {"env", env}, {"view", view}, {"network", network}, {"lanes", "4"}};
        EXPECT_EQ(IsAccepted(given), CanBeTrained(given)) << env << " " << view << " " << network;
      }
    }
  }
  for (const Setting& setting : std::vector<Setting>{{"minibatches", "3"},
                                                     {"minibatches", "4"},
                                                     {"rho_clip", "0"},
                                                     {"c_clip", "0"},
                                                     {"learning_rate", "0"},
                                                     {"discount", "0"}}) {
    const std::vector<Setting> given = {{"env", "cartpole"}, {"lanes", "4"}, setting};
    EXPECT_EQ(IsAccepted(given), CanBeTrained(given)) << setting.key << " " << setting.value;
  }
}

TEST(TrainerFactoryTest, DreamersPolicyNeverFallsBelowTheEntropyOfItsMixture) {
  const EntropyRange vtrace = EntropyOf(MakeRunConfig({{"env", "cartpole"}}));
  EXPECT_EQ(vtrace.least, 0.0);
  EXPECT_NEAR(vtrace.largest, 0.6931, 1e-4);
  const EntropyRange dreamer = EntropyOf(MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}}));
  EXPECT_NEAR(dreamer.least, 0.0315, 1e-4);
  EXPECT_EQ(dreamer.largest, vtrace.largest);
  EXPECT_EQ(
      EntropyOf(MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}, {"actor_unimix", "0"}}))
          .least,
      0.0);
}

TEST(TrainerFactoryTest, DreamerTrainsWithLatentsBesideItsRowsAndVtraceWithout) {
  const RunConfig dreamer = MakeRunConfig({{"env", "cartpole"}, {"algo", "dreamer"}});
  EXPECT_NE(MakeTrainer(dreamer, RowSpecOf(dreamer), /*threads=*/1), nullptr);
  const std::optional<LatentSpec> latents = LatentsOf(dreamer);
  ASSERT_TRUE(latents.has_value());
  EXPECT_GT(latents->deter * latents->stoch, 0U);
  EXPECT_FALSE(LatentsOf(MakeRunConfig({})).has_value());
}

// A new trainer would begin with moments of gradients that are not its own.
TEST(TrainerFactoryTest,
     WhatATrainerKeepsBesideParametersStaysFreshInARunBegunWithAnothersWeights) {
  const std::vector<std::string> of_parameters = {kPlayedPrefix, kTrainedPrefix, kModelPrefix,
                                                  kSlowPrefix, "return_range"};
  for (const std::vector<Setting>& given :
       std::vector<std::vector<Setting>>{{}, {{"average_updates", "8"}}, {{"algo", "dreamer"}}}) {
    std::vector<Setting> all = given;
    all.push_back({"env", "cartpole"});
    const RunConfig run = MakeRunConfig(all);
    const TrainerState fresh = MakeTrainer(run, RowSpecOf(run), /*threads=*/1)->Save();
    TrainerState other = fresh;
    for (TrainerState::Tensor& tensor : other.tensors) std::ranges::fill(tensor.data, 7.0F);
    const TrainerState begun = BegunWith(fresh, other);
    ASSERT_EQ(begun.tensors.size(), fresh.tensors.size());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < begun.tensors.size(); ++i) {
      const std::string& name = begun.tensors[i].name;
      const bool taken = std::ranges::any_of(
          of_parameters, [&](const std::string& prefix) { return name.starts_with(prefix); });
      EXPECT_EQ(begun.tensors[i].data, (taken ? other : fresh).tensors[i].data) << name;
      kept += taken ? 0 : 1;
    }
    EXPECT_GT(kept, 0U);
  }
}

// One window of empty boards and legal first actions.
class OneWindow final : public BatchSource {
 public:
  explicit OneWindow(const RunConfig& run)
      : rows_of_window_(run.window + 1),
        rows_(RowSpecOf(run), /*shards=*/1, /*capacity_rows=*/rows_of_window_),
        gate_({.capacity_rows = rows_of_window_, .commit_stride = 1},
              std::make_unique<FifoSelector>(1, run.window), FifoLimiter(/*batch_windows=*/1)) {
    gate_.BeginGeneration(0);
    for (int t = 0; t < rows_of_window_; ++t) {
      const Chunk chunk = gate_.Acquire(0, 1, 0);
      RowView row(rows_.layout(), rows_.Row(0, chunk.first));
      std::fill_n(row.mask, run.lanes, 1U);
      std::fill_n(row.cont, run.lanes, 1.0F);
      std::fill_n(row.reward, run.lanes, 1.0F);
      gate_.Commit(chunk);
    }
  }
  TrainBatch Next() override { return {gate_.OpenLease(1, rows_of_window_, 0), rows_}; }

 private:
  const int rows_of_window_;
  HostRows rows_;
  ReplayGate gate_;
};

TEST(TrainerFactoryTest, TrainersRoundFactorsWhereTheRunSaysSoAndTheProcessorGainsByIt) {
  const auto trained = [](const char* precision) {
    const RunConfig run =
        MakeRunConfig({{"precision", precision}, {"lanes", "4"}, {"window", "4"}});
    const auto trainer = MakeTrainer(run, RowSpecOf(run), /*threads=*/1);
    OneWindow source(run);
    EXPECT_GT(trainer->Step(source, 0).updates, 0);
    std::vector<std::byte> weights;
    trainer->PolicyBlob(weights);
    return weights;
  };
  const bool gains = &BestDenseKernels(Precision::kBf16) != &BestDenseKernels();
  EXPECT_EQ(trained("f32"), trained("f32"));
  EXPECT_EQ(trained("bf16") != trained("f32"), gains);
}

}  // namespace
}  // namespace tetrion::learner
