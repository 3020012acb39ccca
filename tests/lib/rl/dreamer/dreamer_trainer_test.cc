#include "lib/rl/dreamer/dreamer_trainer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "lib/nn/dreamer/dreamer_acting.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/rl/dreamer/dreamer_figures.h"
#include "tests/lib/rl/dreamer/fixed_source.h"
#include "tests/support/learner_ring.h"

namespace tetrion {
namespace {

using testing::FixedSource;
using testing::Latents;

constexpr int kSteps = 8, kLanes = 4, kRows = kSteps + 1;

EnvSpec TestEnv() {
  return testing::VectorEnv();
}

float FloatOf(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16);
}

DreamerConfig TestConfig() {
  return {.settings = {.horizon = 5, .learning_rate = 1e-3, .warmup_updates = 20},
          .window = kSteps,
          .batch_lanes = kLanes};
}
std::unique_ptr<Trainer> MakeTestTrainer(const DreamerConfig& config = TestConfig()) {
  return MakeDreamerTrainer(config, TestEnv());
}

std::vector<float> ParametersOf(const Trainer& trainer) {
  std::vector<float> all;
  for (const TrainerState::Tensor& tensor : trainer.Save().tensors) {
    all.insert(all.end(), tensor.data.begin(), tensor.data.end());
  }
  return all;
}

TEST(DreamerTrainer, ANewModelPredictsNothing) {
  FixedSource source;
  const UpdateStats stats = MakeTestTrainer()->Step(source, 0);
  ASSERT_EQ(stats.updates, 1);
  // Rewards and values are spread evenly over 255 bins, whose mean is 0.
  EXPECT_NEAR(Figure(stats, "reward_loss"), std::log(255.0), 1e-4);
  EXPECT_EQ(Figure(stats, "imagined_reward"), 0.0);
  EXPECT_EQ(Figure(stats, "imagined_value"), 0.0);
  EXPECT_EQ(Figure(stats, "imagined_return"), 0.0);
  EXPECT_EQ(Figure(stats, "return_scale"), 1.0);
  EXPECT_NEAR(Figure(stats, "continue_loss"), std::log(2.0), 0.2);
  EXPECT_GT(Figure(stats, "dynamics_loss"), 1.0);
  EXPECT_EQ(Figure(stats, "representation_loss"), Figure(stats, "dynamics_loss"));
  EXPECT_NEAR(Figure(stats, "entropy"), std::log(2.0), 1e-2);
  EXPECT_NEAR(Figure(stats, "policy_loss"), -3e-4 * Figure(stats, "entropy"), 3e-4);
  // Two targets, of the return and of the slow critic.
  EXPECT_LT(Figure(stats, "value_loss"), 2 * std::log(255.0));
  EXPECT_GT(Figure(stats, "replay_value_loss"), 0.0);
  EXPECT_GT(Figure(stats, "grad_norm"), 0.0);
}

TEST(DreamerTrainer, LearnsTheRowsOfOneBatchByHeart) {
  FixedSource source;
  DreamerConfig config = TestConfig();
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer(config);
  const UpdateStats first = trainer->Step(source, 0);
  UpdateStats last;
  for (int i = 1; i < 200; ++i) {
    last = trainer->Step(source, 0);
    ASSERT_EQ(last.updates, 1) << last.problem;
  }
  EXPECT_LT(Figure(last, "reconstruction_loss"), 0.2 * Figure(first, "reconstruction_loss"));
  EXPECT_LT(Figure(last, "reward_loss"), 0.2 * Figure(first, "reward_loss"));
  EXPECT_GE(Figure(last, "dynamics_loss"), 1.0);
}

TEST(DreamerTrainer, WritesBackTheLatentsOfTrainedRows) {
  FixedSource source;
  std::vector<std::uint8_t> valid(kRows * kLanes, 0);
  EXPECT_EQ(source.Valid(), valid);
  EXPECT_EQ(MakeTestTrainer()->Step(source, 0).updates, 1);
  std::fill(valid.begin() + kLanes, valid.end(), 1);
  EXPECT_EQ(source.Valid(), valid) << "the context row keeps what it had";
}

// Each row's latents lead to the next row's by the step that actors take.
TEST(DreamerTrainer, LatentsThatItWritesBackFollowFromThoseOfTheRowBefore) {
  FixedSource source;
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  ASSERT_EQ(trainer->Step(source, 0).updates, 1);  // the warm-up's first step is 0
  std::vector<std::byte> blob;
  trainer->PolicyBlob(blob);
  DreamerActing acting(DreamerShapeOf(TestEnv(), "nano"));
  std::memcpy(acting.parameters().data(), blob.data(), blob.size());
  const DreamerShape& shape = acting.shape();
  const auto deters = static_cast<std::size_t>(shape.size.deter),
             groups = static_cast<std::size_t>(shape.size.stoch),
             classes = static_cast<std::size_t>(shape.size.classes);
  const Latents known = source.Known();
  for (int t = 2; t < kRows; ++t) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto cell = static_cast<std::size_t>(t * kLanes + lane), before = cell - kLanes;
      std::vector<float> deter(deters), stoch(groups * classes), action(2), next(deters),
          log_probs(groups * classes);
      const bool begins = t == source.EndOf(lane) + 1;
      if (!begins) {
        for (std::size_t i = 0; i < deters; ++i)
          deter[i] = FloatOf(known.deter[before * deters + i]);
        for (std::size_t g = 0; g < groups; ++g) {
          stoch[g * classes + known.stoch[before * groups + g]] = 1.0F;
        }
        action[static_cast<std::size_t>(source.ActionOf(t - 1, lane))] = 1.0F;
      }
      const std::vector<float> view = source.ViewOf(t, lane);
      acting.Observe(1, {deter.data(), stoch.data(), action.data(), view.data()}, next.data(),
                     log_probs.data());
      double error = 0, size = 0;
      for (std::size_t i = 0; i < deters; ++i) {
        error += std::abs(next[i] - FloatOf(known.deter[cell * deters + i]));
        size += std::abs(next[i]);
      }
      EXPECT_EQ(size > 0, !begins) << "a new model makes nothing of nothing";
      EXPECT_LE(error, 0.02 * size) << "row " << t << " of lane " << lane;
    }
  }
}

TEST(DreamerTrainer, GoesOnFromItsCheckpointAsIfNothingHadBeen) {
  FixedSource source;
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(trainer->Step(source, 0).updates, 1);
  DreamerConfig config = TestConfig();
  const std::unique_ptr<Trainer> resumed = MakeTestTrainer(config);
  resumed->Load(trainer->Save());
  const UpdateStats next = trainer->Step(source, 0), again = resumed->Step(source, 0);
  EXPECT_EQ(next.figures, again.figures);
  EXPECT_EQ(ParametersOf(*trainer), ParametersOf(*resumed));
}

TEST(DreamerTrainer, TheBlobIsTheBeginningOfTheParameters) {
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  std::vector<std::byte> blob;
  trainer->PolicyBlob(blob);
  ASSERT_EQ(blob.size(), trainer->PolicyBlobBytes());
  ASSERT_EQ(blob.size(), ActingFloats(DreamerShapeOf(TestEnv(), "nano")) * sizeof(float));
  const std::vector<float> parameters = ParametersOf(*trainer);
  EXPECT_EQ(std::memcmp(blob.data(), parameters.data(), blob.size()), 0);
}

TEST(DreamerTrainer, AnUpdateThatIsNotFiniteChangesNothing) {
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  const std::vector<float> before = ParametersOf(*trainer);
  FixedSource poisoned({.poison = std::numeric_limits<float>::infinity()});
  const UpdateStats stats = trainer->Step(poisoned, 0);
  EXPECT_EQ(stats.updates, 0);
  EXPECT_EQ(stats.skipped, 1);
  EXPECT_EQ(stats.problem, "a reward of the batch");
  EXPECT_EQ(ParametersOf(*trainer), before);
  EXPECT_EQ(poisoned.Valid(), std::vector<std::uint8_t>(kRows * kLanes, 0));
}

// The trainer's state with the first number of one tensor replaced.
TrainerState With(const Trainer& trainer, const std::string& name, float value) {
  TrainerState state = trainer.Save();
  for (TrainerState::Tensor& tensor : state.tensors) {
    if (tensor.name == name) tensor.data.front() = value;
  }
  return state;
}

TEST(DreamerTrainer, SaysWhichPartWasNotFiniteFirst) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  FixedSource source;
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  for (const auto& [tensor, part] : {std::pair{"model.decoder.out.bias", "the reconstruction loss"},
                                     std::pair{"model.continue.out.bias", "the continue loss"}}) {
    trainer->Load(With(*MakeTestTrainer(), tensor, tensor[6] == 'd' ? kHuge : -kHuge));
    const std::vector<float> before = ParametersOf(*trainer);
    const UpdateStats stats = trainer->Step(source, 0);
    EXPECT_EQ(stats.skipped, 1);
    EXPECT_EQ(stats.problem, part);
    EXPECT_EQ(ParametersOf(*trainer), before);
  }
}

// Learners whose mean is no number.
class SpoiledSync final : public GradientSync {
 public:
  bool AllCanStep(bool ready) override { return ready; }
  void AllReduce(std::span<float> gradients) override { gradients.front() = std::nanf(""); }
};

TEST(DreamerTrainer, AGradientThatIsNotFiniteLeavesEverythingAsItWas) {
  FixedSource source;
  const std::unique_ptr<Trainer> trainer =
      MakeDreamerTrainer(TestConfig(), TestEnv(), std::make_unique<SpoiledSync>());
  TrainerState state = MakeTestTrainer()->Save();
  for (TrainerState::Tensor& tensor : state.tensors) {
    if (tensor.name == "return_range") tensor.data = {-3.0F, 5.0F};
  }
  trainer->Load(state);
  const std::vector<float> before = ParametersOf(*trainer);
  const UpdateStats stats = trainer->Step(source, 0);
  EXPECT_EQ(stats.skipped, 1);
  EXPECT_TRUE(stats.problem.starts_with("the gradient of ")) << stats.problem;
  EXPECT_EQ(ParametersOf(*trainer), before);
  EXPECT_EQ(source.Valid(), std::vector<std::uint8_t>(kRows * kLanes, 0));
}

// Two learners of one model on batches of their own, of which the second one's is spoilt in the
// second update: the first one waits for no gradient of it.
TEST(DreamerTrainer, LearnersThatShareGradientsSkipAnUpdateTogether) {
  testing::LearnerRing ring(2);
  std::vector<UpdateStats> stats[2];
  std::vector<float> parameters[2];
  const auto learn = [&](int rank) {
    DreamerConfig config = TestConfig();
    config.settings.warmup_updates = 0;  // a new model's losses know nothing of rewards
    const std::unique_ptr<Trainer> trainer = MakeDreamerTrainer(config, TestEnv(), ring.Join());
    // Batches of their own: rank 1 has other rewards.
    FixedSource good({.poison = 0.25F * static_cast<float>(rank)});
    FixedSource spoilt({.poison = std::numeric_limits<float>::infinity()});
    for (int update = 0; update < 3; ++update) {
      stats[rank].push_back(trainer->Step(update == 1 && rank == 1 ? spoilt : good, 0));
    }
    parameters[rank] = ParametersOf(*trainer);
  };
  std::thread other([&] { learn(1); });
  learn(0);
  other.join();
  EXPECT_EQ(ring.reduced(), 2);
  for (const std::vector<UpdateStats>& rank : stats) {
    ASSERT_EQ(rank.size(), 3U);
    EXPECT_EQ(rank[0].updates + rank[2].updates, 2);
    EXPECT_EQ(rank[1].skipped, 1);
  }
  EXPECT_EQ(stats[0][1].problem, "the loss of another learner");
  EXPECT_EQ(stats[1][1].problem, "a reward of the batch");
  EXPECT_NE(Figure(stats[0][2], "loss"), Figure(stats[1][2], "loss"));
  // All but the range of imagined returns, which each has of its own.
  for (std::vector<float>& all : parameters) all.resize(all.size() - 2);
  EXPECT_EQ(parameters[0], parameters[1]);
}

// Rows of lanes 2 and 3 behind their ends.
testing::FixedRows IdleRows(float noise) {
  return {.idle_lanes = 2, .idle_noise = noise};
}

TEST(DreamerTrainer, WhatTheRowsOfALaneThatIdlesHoldTeachesNothing) {
  DreamerConfig config = TestConfig();
  config.settings.warmup_updates = 0;
  config.settings.return_rate = 0.5;
  FixedSource source(IdleRows(0)), other(IdleRows(3));
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer(config), same = MakeTestTrainer(config);
  UpdateStats stats;
  for (int update = 0; update < 4; ++update) {
    stats = trainer->Step(source, 0);
    ASSERT_EQ(stats.updates, 1) << stats.problem;
    EXPECT_EQ(same->Step(other, 0).figures, stats.figures) << "update " << update;
  }
  EXPECT_NE(Figure(stats, "imagined_return"), 0.0) << "returns to be scaled";
  EXPECT_EQ(ParametersOf(*trainer), ParametersOf(*same));
}

TEST(DreamerTrainer, MeansAreThoseOfTheRowsThatCount) {
  FixedSource source(IdleRows(3));
  const UpdateStats stats = MakeTestTrainer()->Step(source, 0);
  ASSERT_EQ(stats.updates, 1) << stats.problem;
  EXPECT_NEAR(Figure(stats, "reward_loss"), std::log(255.0), 1e-4) << "of a new model";
  EXPECT_NEAR(Figure(stats, "continue_loss"), std::log(2.0), 0.2);
  EXPECT_NEAR(Figure(stats, "entropy"), std::log(2.0), 1e-2);
}

// Notes what it is asked.
class NotedSync final : public GradientSync {
 public:
  explicit NotedSync(std::vector<bool>& ready) : ready_(ready) {}
  bool AllCanStep(bool ready) override {
    ready_.push_back(ready);
    return ready;
  }
  void AllReduce(std::span<float>) override {}

 private:
  std::vector<bool>& ready_;
};

TEST(DreamerTrainer, ABatchOfLanesThatIdleIsNoUpdateAndNoFault) {
  std::vector<bool> ready;
  const std::unique_ptr<Trainer> trainer =
      MakeDreamerTrainer(TestConfig(), TestEnv(), std::make_unique<NotedSync>(ready));
  const std::vector<float> before = ParametersOf(*trainer);
  FixedSource idle(testing::AllIdle()), source;
  const UpdateStats stats = trainer->Step(idle, 0);
  EXPECT_EQ(stats.status, BatchStatus::kReady);
  EXPECT_EQ(stats.updates, 0);
  EXPECT_EQ(stats.skipped, 0);
  EXPECT_EQ(stats.problem, "");
  EXPECT_EQ(stats.figures, UpdateStats().figures);
  EXPECT_EQ(ParametersOf(*trainer), before);
  EXPECT_EQ(idle.Valid(), std::vector<std::uint8_t>(kRows * kLanes, 0));
  EXPECT_EQ(trainer->Step(source, 0).updates, 1);
  EXPECT_EQ(ready, (std::vector<bool>{false, true})) << "other learners are told";
}

// Counts what the tensor library allocates and frees in the calling thread.
class CountedMemory final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    live += bytes;
    if (bytes > 0) ++allocations;
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::int64_t allocations = 0, live = 0;  // live: bytes
};

TEST(DreamerTrainer, EveryUpdateAllocatesTheSameAndKeepsNothing) {
  FixedSource source;
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  const auto counted = [&] {
    const auto memory = std::make_shared<CountedMemory>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
    EXPECT_EQ(trainer->Step(source, 0).updates, 1);
    return std::pair(memory->allocations, memory->live);
  };
  (void)counted();  // latents of the first update stay
  const auto [allocations, live] = counted();
  EXPECT_GT(allocations, 0);
  EXPECT_EQ(live, 0);
  for (int update = 0; update < 5; ++update) {
    EXPECT_EQ(counted(), std::pair(allocations, std::int64_t{0})) << "update " << update;
  }
}

std::string RefusalOf(Trainer& trainer, const TrainerState& state) {
  try {
    trainer.Load(state);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    return error.what();
  }
  return "";
}

TEST(DreamerTrainer, RefusesOtherCheckpointsAndStaysAsItWas) {
  const std::unique_ptr<Trainer> trainer = MakeTestTrainer();
  const std::vector<float> before = ParametersOf(*trainer);
  DreamerConfig larger = TestConfig();
  larger.settings.size = "1m";
  EXPECT_NE(RefusalOf(*trainer, MakeTestTrainer(larger)->Save()).find("has shape"),
            std::string::npos);
  TrainerState other;
  EXPECT_NE(RefusalOf(*trainer, other).find("no counter"), std::string::npos);
  other.counters["updates"] = 1;
  EXPECT_NE(RefusalOf(*trainer, other).find("another algorithm"), std::string::npos);
  EXPECT_NE(RefusalOf(*trainer, With(*trainer, "slow.value.out.bias", std::nanf(""))).find("NaN"),
            std::string::npos);
  EXPECT_EQ(ParametersOf(*trainer), before);
}

TEST(DreamerTrainer, RefusesSettingsOutOfRange) {
  DreamerConfig config = TestConfig();
  config.settings.horizon = 0;
  EXPECT_THROW((void)MakeTestTrainer(config), Error);
  config = TestConfig();
  config.settings.size = "2m";
  EXPECT_THROW((void)MakeTestTrainer(config), Error);
  config = TestConfig();
  config.window = 1;
  EXPECT_THROW((void)MakeTestTrainer(config), Error);
}

}  // namespace
}  // namespace tetrion
