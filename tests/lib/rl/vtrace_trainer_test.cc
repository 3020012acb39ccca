#include "lib/rl/vtrace_trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "lib/core/error.h"
#include "lib/nn/categorical.h"
#include "lib/nn/network.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

constexpr int kSteps = 4, kLanes = 16;

EnvSpec BanditEnv() {
  return testing::VectorEnv();
}
RowSpec BanditRows() {
  return {.record_bytes = BanditEnv().obs.record_bytes, .lanes = kLanes, .has_mask = false};
}

VtraceConfig BanditConfig() {
  return {.window = kSteps, .learning_rate = 1e-2, .reuse = 1};
}

// One-step episodes of a bandit: the first number of the record says which of two actions pays 1.
// Actions are drawn uniformly, so every batch is off-policy once the policy has learned.
class BanditSource final : public BatchSource {
 public:
  BatchStatus Next(RowBatch& batch) override {
    if (batches_ == limit) return BatchStatus::kClosed;
    ++batches_;
    for (int t = 0; t <= kSteps; ++t) {
      for (int lane = 0; lane < kLanes; ++lane) Fill(batch, t, lane);
    }
    if (unfinished_view) LeaveUnfinished(batch);
    std::fill(batch.policy_version.begin(), batch.policy_version.end(), row_version);
    return BatchStatus::kReady;
  }

  int limit = 1 << 30;
  float poison = 0.0F;  // added to every reward
  std::uint32_t row_version = 0;
  std::optional<float> unfinished_view;  // the last rows' episodes go on, and look like this

 private:
  void LeaveUnfinished(RowBatch& batch) const {
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto cell = static_cast<std::size_t>(kSteps * kLanes + lane);
      const float view[4] = {*unfinished_view, 1.0F, 0.0F, 0.0F};
      std::memcpy(batch.record.data() + cell * sizeof view, view, sizeof view);
      batch.flags[cell] = 0;
      batch.cont[cell] = 1.0F;
    }
  }
  void Fill(RowBatch& batch, int t, int lane) {
    const auto cell = static_cast<std::size_t>(t * kLanes + lane);
    const bool last = (t + lane) % 2 == 1;  // rows alternate: decide, end
    const PhiloxBlock draw =
        PhiloxDraw(static_cast<std::uint64_t>(batches_), cell, 0, PhiloxPurpose::kSampler);
    const std::int32_t paying = static_cast<std::int32_t>(draw.word[0] & 1);
    const float view[4] = {paying == 1 ? 1.0F : -1.0F, 1.0F, 0.0F, last ? 1.0F : 0.0F};
    std::memcpy(batch.record.data() + cell * sizeof view, view, sizeof view);
    batch.action[cell] = last ? 0 : static_cast<std::int32_t>(draw.word[1] & 1);
    batch.log_prob[cell] = last ? 0.0F : std::log(0.5F);
    batch.flags[cell] = last ? kIsLast | kTerminated : kIsFirst;
    batch.cont[cell] = last ? 0.0F : 1.0F;
    batch.reward[cell] = poison;
    if (t > 0 && last) {
      const std::size_t before = cell - kLanes;
      float context = 0;
      std::memcpy(&context, batch.record.data() + before * sizeof view, sizeof context);
      batch.reward[cell] += (batch.action[before] == 1) == (context > 0) ? 1.0F : 0.0F;
    }
  }

  int batches_ = 0;
};

std::unique_ptr<Trainer> MakeBanditTrainer(const VtraceConfig& config) {
  return MakeVtraceTrainer(config, BanditEnv(), BanditRows());
}

std::vector<std::byte> BlobOf(const Trainer& trainer) {
  std::vector<std::byte> blob;
  trainer.PolicyBlob(blob);
  return blob;
}

// Probability that a network with these weights takes the paying action.
double PayingProbability(const Trainer& trainer) {
  const auto network = MakeNetwork({.max_states = 2}, BanditEnv());
  const std::vector<std::byte> blob = BlobOf(trainer);
  EXPECT_EQ(blob.size(), network->parameters().size_bytes());
  std::memcpy(network->parameters().data(), blob.data(), blob.size());
  const float view[8] = {-1, 1, 0, 0, 1, 1, 0, 0};
  float logits[4];
  network->Infer(view, nullptr, 2, logits, nullptr);
  return 0.5 * (std::exp(logits[0] - LogNormaliser(logits, 2)) +
                std::exp(logits[3] - LogNormaliser(logits + 2, 2)));
}

TEST(VtraceTrainerTest, LearnsABanditFromOffPolicyRows) {
  const auto trainer = MakeBanditTrainer(BanditConfig());
  BanditSource source;
  EXPECT_NEAR(PayingProbability(*trainer), 0.5, 0.02);
  UpdateStats stats;
  for (int i = 0; i < 300; ++i) stats = trainer->Step(source, 0);
  EXPECT_EQ(stats.status, BatchStatus::kReady);
  EXPECT_EQ(stats.updates, 1);
  EXPECT_TRUE(stats.finite);
  EXPECT_GT(PayingProbability(*trainer), 0.9);
  EXPECT_LT(stats.entropy, 0.5);
  EXPECT_GT(stats.grad_norm, 0.0);
}

TEST(VtraceTrainerTest, PpoClipMinibatchesAndNormalisationLearnTheBanditToo) {
  VtraceConfig config = BanditConfig();
  config.ppo_clip = 0.2;
  config.normalise_advantage = true;
  config.minibatches = 4;
  config.reuse = 2;
  const auto trainer = MakeBanditTrainer(config);
  BanditSource source;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(trainer->Step(source, 0).updates, 8);
  EXPECT_GT(PayingProbability(*trainer), 0.8);
}

TEST(VtraceTrainerTest, SavedAndLoadedTrainingContinuesBitForBit) {
  const auto first = MakeBanditTrainer(BanditConfig());
  BanditSource source;
  for (int i = 0; i < 20; ++i) (void)first->Step(source, 0);
  VtraceConfig other = BanditConfig();
  other.seed = 99;
  const auto second = MakeBanditTrainer(other);
  ASSERT_NE(BlobOf(*first), BlobOf(*second));
  second->Load(first->Save());
  EXPECT_EQ(BlobOf(*first), BlobOf(*second));
  BanditSource same = source;
  for (int i = 0; i < 20; ++i) {
    const UpdateStats a = first->Step(source, 0), b = second->Step(same, 0);
    EXPECT_EQ(a.total_loss, b.total_loss);
    EXPECT_EQ(a.grad_norm, b.grad_norm);
  }
  EXPECT_EQ(BlobOf(*first), BlobOf(*second));
  EXPECT_EQ(first->Save().counters.at("updates"), 40);
}

TEST(VtraceTrainerTest, ForeignStatesAreRefusedByNameAndChangeNothing) {
  const auto trainer = MakeBanditTrainer(BanditConfig());
  const std::vector<std::byte> before = BlobOf(*trainer);
  const auto expect_refused = [&](TrainerState state, const std::string& word) {
    try {
      trainer->Load(state);
      FAIL() << word;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kConfig);
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
    EXPECT_EQ(BlobOf(*trainer), before);
  };
  BanditSource source;
  const auto donor = MakeBanditTrainer(BanditConfig());
  (void)donor->Step(source, 0);
  const TrainerState good = donor->Save();
  TrainerState state = good;
  state.tensors[2].name = "policy.other";
  expect_refused(state, good.tensors[2].name);
  state = good;
  state.tensors.back().shape = {2, 1};
  expect_refused(state, good.tensors.back().name);
  state = good;
  state.tensors[1].data[0] = NAN;
  expect_refused(state, "NaN");
  state = good;
  state.counters.clear();
  expect_refused(state, "updates");
  state = good;
  state.tensors.push_back({"extra", {1}, {0.0F}});
  expect_refused(state, "does not know");
}

TEST(VtraceTrainerTest, NonFiniteUpdateIsSkippedSaidAndForgotten) {
  const auto trainer = MakeBanditTrainer(BanditConfig());
  BanditSource source;
  const std::vector<std::byte> before = BlobOf(*trainer);
  source.poison = std::numeric_limits<float>::quiet_NaN();
  const UpdateStats bad = trainer->Step(source, 0);
  EXPECT_FALSE(bad.finite);
  EXPECT_EQ(bad.updates, 0);
  EXPECT_EQ(BlobOf(*trainer), before);
  source.poison = 0;
  const UpdateStats good = trainer->Step(source, 0);
  EXPECT_TRUE(good.finite);
  EXPECT_EQ(good.updates, 1);
  EXPECT_NE(BlobOf(*trainer), before);
}

// What is seen in the row after a window's last transition changes the update: its value stands for
// all that follows.
TEST(VtraceTrainerTest, LastRowOfAnUnfinishedEpisodeBootstraps) {
  const auto update_with = [](float view) {
    const auto trainer = MakeBanditTrainer(BanditConfig());
    BanditSource source;
    source.unfinished_view = view;
    EXPECT_EQ(trainer->Step(source, 0).updates, 1);
    return BlobOf(*trainer);
  };
  EXPECT_EQ(update_with(1.0F), update_with(1.0F));
  EXPECT_NE(update_with(1.0F), update_with(3.0F));
}

TEST(VtraceTrainerTest, BatchIsReusedOnlyWhileItsLagAllows) {
  VtraceConfig config = BanditConfig();
  config.reuse = 3;
  config.max_lag = 10;
  const auto trainer = MakeBanditTrainer(config);
  BanditSource source;
  source.row_version = 100;
  EXPECT_EQ(trainer->Step(source, 100).updates, 3);
  EXPECT_EQ(trainer->Step(source, 108).updates, 3);
  EXPECT_EQ(trainer->Step(source, 109).updates, 2);
  const UpdateStats late = trainer->Step(source, 150);
  EXPECT_EQ(late.updates, 1);
  EXPECT_EQ(late.lag_p50, 50);
  EXPECT_EQ(late.lag_p99, 50);
  EXPECT_EQ(trainer->Step(source, 90).lag_p99, 0);  // a restarted counter is no lag
}

TEST(VtraceTrainerTest, LearningRateDecaysLinearlyToZero) {
  VtraceConfig config = BanditConfig();
  config.decay_updates = 4;
  const auto trainer = MakeBanditTrainer(config);
  BanditSource source;
  for (const double share : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    EXPECT_NEAR(trainer->Step(source, 0).learning_rate, share * 1e-2, 1e-12);
  }
  const std::vector<std::byte> before = BlobOf(*trainer);
  EXPECT_EQ(trainer->Step(source, 0).learning_rate, 0.0);
  EXPECT_EQ(BlobOf(*trainer), before);
}

TEST(VtraceTrainerTest, ClosedSourceIsPassedOnWithoutAnUpdate) {
  const auto trainer = MakeBanditTrainer(BanditConfig());
  BanditSource source;
  source.limit = 0;
  const UpdateStats stats = trainer->Step(source, 0);
  EXPECT_EQ(stats.status, BatchStatus::kClosed);
  EXPECT_EQ(stats.updates, 0);
}

TEST(VtraceTrainerTest, GradientClippingBoundsTheStep) {
  // With epsilon far above the gradient Adam's first step is rate * gradient / epsilon.
  const auto moved = [](double grad_clip) {
    VtraceConfig config = BanditConfig();
    config.adam_epsilon = 1e3;
    config.learning_rate = 1.0;
    config.grad_clip = grad_clip;
    const auto trainer = MakeBanditTrainer(config);
    const std::vector<std::byte> before = BlobOf(*trainer);
    BanditSource source;
    const double norm = trainer->Step(source, 0).grad_norm;
    const std::vector<std::byte> after = BlobOf(*trainer);
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); i += sizeof(float)) {
      float a, b;
      std::memcpy(&a, before.data() + i, sizeof a);
      std::memcpy(&b, after.data() + i, sizeof b);
      squares += static_cast<double>(a - b) * (a - b);
    }
    return std::pair{std::sqrt(squares) * 1e3, norm};
  };
  const auto [free_step, norm] = moved(0.0);
  EXPECT_NEAR(free_step, norm, 0.05 * norm);
  const auto [clipped_step, same_norm] = moved(norm / 4);
  EXPECT_EQ(norm, same_norm);
  EXPECT_NEAR(clipped_step, norm / 4, 0.05 * norm);
}

TEST(VtraceTrainerTest, SettingsOutOfRangeAreRefused) {
  for (const auto change :
       {+[](VtraceConfig& c) { c.minibatches = 3; }, +[](VtraceConfig& c) { c.window = 0; },
        +[](VtraceConfig& c) { c.reuse = 0; }, +[](VtraceConfig& c) { c.discount = 1.5; },
        +[](VtraceConfig& c) { c.learning_rate = NAN; }}) {
    VtraceConfig config = BanditConfig();
    change(config);
    EXPECT_THROW(MakeBanditTrainer(config), Error);
  }
}

}  // namespace
}  // namespace tetrion
