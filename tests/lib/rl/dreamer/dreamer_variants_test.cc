// The trainer with settings, views and sizes other than the default: each setting reaches the
// computation, each kind of view and the next size learn.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/categorical.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "tests/lib/rl/dreamer/fixed_source.h"

namespace tetrion {
namespace {

using testing::FixedRows;
using testing::FixedSource;

// What takes little time and learns at once.
DreamerSettings Quick() {
  return {.horizon = 3, .learning_rate = 1e-3, .warmup_updates = 0};
}

std::unique_ptr<Trainer> Make(const FixedRows& rows, int threads = 1) {
  return MakeDreamerTrainer({.settings = rows.settings,
                             .window = rows.steps,
                             .batch_lanes = rows.lanes,
                             .threads = threads},
                            rows.env);
}

// The tensors that begin with `prefix`, one behind the other.
std::vector<float> Tensors(const Trainer& trainer, const std::string& prefix) {
  std::vector<float> all;
  for (const TrainerState::Tensor& tensor : trainer.Save().tensors) {
    if (tensor.name.starts_with(prefix)) {
      all.insert(all.end(), tensor.data.begin(), tensor.data.end());
    }
  }
  return all;
}

// A trainer's parameters after `updates` updates with `settings`.
std::vector<float> Learned(const DreamerSettings& settings, int updates = 3) {
  const FixedRows rows = {.settings = settings, .steps = 3, .lanes = 2};
  FixedSource source(rows);
  const auto trainer = Make(rows);
  for (int i = 0; i < updates; ++i) {
    const UpdateStats stats = trainer->Step(source, 0);
    EXPECT_EQ(stats.updates, 1) << stats.problem;
  }
  return Tensors(*trainer, "model.");
}

// Whatever a setting does, it changes what is learnt; formulas have tests of their own.
TEST(DreamerVariants, EverySettingOfTheLossesAndTheOptimiserChangesWhatIsLearnt) {
  const std::vector<float> before = Learned(Quick());
  EXPECT_EQ(Learned(Quick()), before);
  const std::vector<std::pair<const char*, std::function<void(DreamerSettings&)>>> changes = {
      {"norm", [](auto& s) { s.norm = "layer"; }},
      {"unimix", [](auto& s) { s.unimix = 0.2; }},
      {"actor_unimix", [](auto& s) { s.actor_unimix = 0.2; }},
      {"horizon", [](auto& s) { s.horizon = 4; }},
      {"continue_horizon", [](auto& s) { s.continue_horizon = 10; }},
      {"discount_in", [](auto& s) { s.discount_in = "returns"; }},
      {"free_nats", [](auto& s) { s.free_nats = 50; }},
      {"reconstruction_scale", [](auto& s) { s.reconstruction_scale = 2; }},
      {"reward_loss_scale", [](auto& s) { s.reward_loss_scale = 2; }},
      {"continue_loss_scale", [](auto& s) { s.continue_loss_scale = 2; }},
      {"dynamics_scale", [](auto& s) { s.dynamics_scale = 2; }},
      {"representation_scale", [](auto& s) { s.representation_scale = 2; }},
      {"lambda", [](auto& s) { s.lambda = 0.5; }},
      {"entropy_coef", [](auto& s) { s.entropy_coef = 1; }},
      {"start_weight", [](auto& s) { s.start_weight = "data"; }},
      {"return_critic", [](auto& s) { s.return_critic = "slow"; }},
      {"slow_regulariser", [](auto& s) { s.slow_regulariser = 0.5; }},
      {"slow_rate", [](auto& s) { s.slow_rate = 0.5; }},
      {"slow_moves", [](auto& s) { s.slow_moves = "before"; }},
      {"replay_value_scale", [](auto& s) { s.replay_value_scale = 1; }},
      {"learning_rate", [](auto& s) { s.learning_rate = 1e-4; }},
      {"warmup_updates", [](auto& s) { s.warmup_updates = 9; }},
      {"agc", [](auto& s) { s.agc = 1e-3; }},
      {"agc_least_norm", [](auto& s) { s.agc_least_norm = 10; }},
      {"beta1", [](auto& s) { s.beta1 = 0.5; }},
      {"beta2", [](auto& s) { s.beta2 = 0.9; }},
      {"epsilon", [](auto& s) { s.epsilon = 0.1; }},
  };
  for (const auto& [name, change] : changes) {
    DreamerSettings settings = Quick();
    change(settings);
    EXPECT_NE(Learned(settings), before) << name;
  }
}

TEST(DreamerVariants, TheLossIsTheSumOfItsPartsByTheirWeights) {
  FixedRows rows;
  rows.settings = Quick();
  rows.settings.reconstruction_scale = 2;
  rows.settings.reward_loss_scale = 3;
  rows.settings.continue_loss_scale = 5;
  rows.settings.dynamics_scale = 7;
  rows.settings.representation_scale = 11;
  rows.settings.replay_value_scale = 13;
  FixedSource source(rows);
  const UpdateStats stats = Make(rows)->Step(source, 0);
  const double want = 2 * Figure(stats, "reconstruction_loss") + 3 * Figure(stats, "reward_loss") +
                      5 * Figure(stats, "continue_loss") + 7 * Figure(stats, "dynamics_loss") +
                      11 * Figure(stats, "representation_loss") + Figure(stats, "policy_loss") +
                      Figure(stats, "value_loss") + 13 * Figure(stats, "replay_value_loss");
  EXPECT_NEAR(Figure(stats, "loss"), want, 1e-9 * std::abs(want));
}

TEST(DreamerVariants, TheSlowCriticFollowsTheParametersAfterOrBeforeTheStep) {
  for (const char* moves : {"after", "before"}) {
    FixedRows rows;
    rows.settings = Quick();
    rows.settings.slow_moves = moves;
    rows.settings.slow_rate = 0.25;
    FixedSource source(rows);
    const auto trainer = Make(rows);
    std::vector<float> online = Tensors(*trainer, "model.value."), slow = online;
    for (int update = 0; update < 3; ++update) {
      EXPECT_EQ(trainer->Step(source, 0).updates, 1);
      const std::vector<float> next = Tensors(*trainer, "model.value.");
      const std::vector<float>& followed = moves[0] == 'a' ? next : online;
      for (std::size_t i = 0; i < slow.size(); ++i) slow[i] += 0.25F * (followed[i] - slow[i]);
      EXPECT_EQ(Tensors(*trainer, "slow.value."), slow) << moves << " " << update;
      online = next;
    }
  }
}

// The range that returns are scaled by, which was `before`, after an update at `rate` of a model
// that imagines rewards.
std::vector<float> RangeAfter(double rate, const std::vector<float>& before) {
  FixedRows rows;
  rows.settings = Quick();
  rows.settings.return_rate = rate;
  FixedSource source(rows);
  const auto trainer = Make(rows);
  TrainerState state = trainer->Save();
  for (TrainerState::Tensor& tensor : state.tensors) {
    if (tensor.name == "model.reward.out.bias") tensor.data.back() = 1;  // of the largest reward
    if (tensor.name == "return_range") tensor.data = before;
  }
  trainer->Load(state);
  const UpdateStats stats = trainer->Step(source, 0);
  EXPECT_EQ(stats.updates, 1) << stats.problem;
  return Tensors(*trainer, "return_range");
}

TEST(DreamerVariants, TheRangeOfReturnsFollowsEachBatchAtItsRate) {
  const std::vector<float> none = {0, 0}, some = {-3, 5};
  EXPECT_EQ(RangeAfter(0, none), none);
  EXPECT_EQ(RangeAfter(0, some), some);
  const std::vector<float> own = RangeAfter(1, none);
  EXPECT_EQ(RangeAfter(1, some), own) << "the batch's percentiles, whatever was before";
  EXPECT_GT(own.at(0), 1);
  EXPECT_GE(own.at(1), own.at(0));
  const std::vector<float> half = RangeAfter(0.5, none), between = RangeAfter(0.5, some);
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_FLOAT_EQ(half.at(i), own.at(i) / 2);
    EXPECT_FLOAT_EQ(between.at(i), (some.at(i) + own.at(i)) / 2);
  }
}

// Of one batch and one model, as the rate is 0.
TEST(DreamerVariants, EveryUpdateDrawsStatesOfItsOwn) {
  FixedRows rows = {.settings = Quick(), .steps = 3, .lanes = 2};
  rows.settings.learning_rate = 0;
  FixedSource source(rows);
  const auto trainer = Make(rows);
  std::set<double> entropies;
  for (int i = 0; i < 4; ++i) {
    const UpdateStats stats = trainer->Step(source, 0);
    EXPECT_EQ(stats.updates, 1) << stats.problem;
    entropies.insert(Figure(stats, "posterior_entropy"));
  }
  EXPECT_EQ(entropies.size(), 4U);
}

// A model whose actor and posterior are certain of one choice, but for the mixture.
TEST(DreamerVariants, MixturesLeaveTheirLeastEntropy) {
  for (const double share : {0.0, 0.01, 0.3}) {
    FixedRows rows;
    rows.settings = Quick();
    rows.settings.actor_unimix = share;
    rows.settings.unimix = share / 2;
    const auto trainer = Make(rows);
    TrainerState state = trainer->Save();
    const DreamerSize size = DreamerSizeOf("nano");
    for (TrainerState::Tensor& tensor : state.tensors) {
      if (tensor.name == "model.actor.out.bias") tensor.data.front() = 60;
      if (tensor.name != "model.posterior.out.bias") continue;
      for (std::size_t i = 0; i < tensor.data.size(); i += static_cast<std::size_t>(size.classes)) {
        tensor.data[i] = 60;
      }
    }
    trainer->Load(state);
    FixedSource source(rows);
    const UpdateStats stats = trainer->Step(source, 0);
    EXPECT_NEAR(Figure(stats, "entropy"), LeastEntropy(share, 2), 1e-4) << share;
    EXPECT_NEAR(
        Figure(stats, "posterior_entropy"),
        static_cast<double>(size.stoch) * LeastEntropy(share / 2, static_cast<int>(size.classes)),
        1e-3)
        << share;
  }
}

TEST(DreamerVariants, LayerNormIsAnotherModelAndLearns) {
  FixedRows rows = {.settings = Quick(), .steps = 4, .lanes = 3};
  const auto rms = Make(rows);
  rows.settings.norm = "layer";
  const auto layer = Make(rows);
  EXPECT_TRUE(Tensors(*rms, "model.actor.0.shift").empty());
  EXPECT_EQ(Tensors(*layer, "model.actor.0.shift").size(), 64U);
  EXPECT_THROW(layer->Load(rms->Save()), Error);
  EXPECT_THROW(rms->Load(layer->Save()), Error);
  FixedSource source(rows);
  const UpdateStats first = layer->Step(source, 0);
  UpdateStats last;
  for (int i = 0; i < 40; ++i) last = layer->Step(source, 0);
  EXPECT_EQ(last.updates, 1) << last.problem;
  EXPECT_LT(Figure(last, "reconstruction_loss"), 0.9 * Figure(first, "reconstruction_loss"));
}

// One kind of view or another size: shapes, a first update, and what is learnt of a fixed batch.
void LearnsByHeart(const FixedRows& rows, int updates, double share) {
  FixedSource source(rows);
  const auto trainer = Make(rows);
  const DreamerShape shape = DreamerShapeOf(rows.env, rows.settings.size);
  ASSERT_EQ(trainer->PolicyBlobBytes(), ActingFloats(shape) * sizeof(float));
  const UpdateStats first = trainer->Step(source, 0);
  ASSERT_EQ(first.updates, 1) << first.problem;
  EXPECT_NEAR(Figure(first, "reward_loss"), std::log(255.0), 1e-4);
  const testing::Latents known = source.Known();
  EXPECT_EQ(known.valid.back(), 1);
  EXPECT_LT(*std::max_element(known.stoch.begin(), known.stoch.end()), shape.size.classes);
  UpdateStats last = first;
  for (int i = 0; i < updates; ++i) {
    last = trainer->Step(source, 0);
    ASSERT_EQ(last.updates, 1) << last.problem;
  }
  EXPECT_LT(Figure(last, "reconstruction_loss"), share * Figure(first, "reconstruction_loss"));
  EXPECT_LT(Figure(last, "reward_loss"), share * Figure(first, "reward_loss"));
}

TEST(DreamerVariants, PlanesAreLearntByHeart) {
  const FixedRows rows = {.env = testing::PlanesEnv(), .settings = Quick(), .steps = 4, .lanes = 3};
  LearnsByHeart(rows, 40, 0.9);
}

TEST(DreamerVariants, PicturesAreLearntByHeart) {
  const FixedRows rows = {.env = testing::EnvWithView<72 * 80>("pixels", 3, false),
                          .settings = Quick(),
                          .steps = 2,
                          .lanes = 2};
  LearnsByHeart(rows, 12, 0.95);
}

TEST(DreamerVariants, TheNextSizeIsLearntByHeart) {
  DreamerSettings settings = Quick();
  settings.size = "1m";
  LearnsByHeart({.settings = settings, .steps = 4, .lanes = 3}, 40, 0.8);
}

TEST(DreamerVariants, TwoThreadsLearnAsOneDoes) {
  const FixedRows rows = {.settings = Quick(), .steps = 4, .lanes = 3};
  FixedSource source(rows);
  const auto one = Make(rows, 1), two = Make(rows, 2);
  for (int i = 0; i < 3; ++i) {
    const UpdateStats a = one->Step(source, 0), b = two->Step(source, 0);
    ASSERT_EQ(a.updates + b.updates, 2) << a.problem << b.problem;
    EXPECT_NEAR(Figure(a, "loss"), Figure(b, "loss"), 1e-3 * Figure(a, "loss"));
  }
}

}  // namespace
}  // namespace tetrion
