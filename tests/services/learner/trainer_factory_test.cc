// What `up` and the coordinator accept of a run's settings, a trainer can be made of, and what no
// trainer can be made of they refuse.
#include "services/learner/trainer_factory.h"

#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "lib/nn/network.h"
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

}  // namespace
}  // namespace tetrion::learner
