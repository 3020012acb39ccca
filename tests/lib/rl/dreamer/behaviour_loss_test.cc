#include "lib/rl/dreamer/behaviour_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/rl/dreamer/return_scale.h"
#include "lib/rl/dreamer/world_model_loss.h"
#include "tests/lib/nn/dreamer/golden_tensors.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using testing::Golden;
using testing::GoldenTensor;
using torch::Tensor;

constexpr int kSteps = 5, kLanes = 2, kHorizon = 3;
constexpr std::int64_t kDeter = 16, kGroups = 4, kClasses = 4, kActions = 3;

DreamerShape SmallShape() {
  return {.size = {.deter = kDeter,
                   .units = 8,
                   .stoch = kGroups,
                   .classes = kClasses,
                   .depth = 2,
                   .blocks = 4},
          .floats = 4,
          .actions = kActions};
}

template <typename Number>
std::vector<Number> Numbers(const std::string& name) {
  const std::vector<float>& data = Golden(name).data;
  return {data.begin(), data.end()};
}

// Every part of the loss of a small model on one batch, with the samples that are given.
class GoldenLoss : public ::testing::Test {
 protected:
  GoldenLoss()
      : layout_(DreamerLayout(SmallShape())),
        parameters_(FloatsOf(layout_)),
        gradients_(parameters_.size()),
        slow_parameters_(DreamerModule(layout_, "value").size) {}

  void SetUp() override {
    if (!testing::HasGolden("loss.view")) GTEST_SKIP() << testing::kNoCase;
    const std::size_t critic = DreamerModule(layout_, "value").offset;
    for (const ParameterInfo& info : layout_) {
      Put("loss.p." + info.name, parameters_, info.offset);
      if (info.offset >= critic)
        Put("loss.slow." + info.name, slow_parameters_, info.offset - critic);
    }
    FillBatch();
    rows_.Fill();
    rows_.deter.copy_(GoldenTensor("loss.deter"));
    rows_.stoch.copy_(GoldenTensor("loss.stoch"));
  }

  static void Put(const std::string& name, std::vector<float>& to, std::size_t offset) {
    const std::vector<float>& data = Golden(name).data;
    std::copy(data.begin(), data.end(), to.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void FillBatch() {
    const std::vector<float>& view = Golden("loss.view").data;
    std::copy(view.begin(), view.end(), batch_.view.begin() + kLanes * 4);
    batch_.reward = Golden("loss.reward").data;
    batch_.is_first = Numbers<std::uint8_t>("loss.first");
    batch_.is_last = Numbers<std::uint8_t>("loss.last");
    batch_.is_terminal = Numbers<std::uint8_t>("loss.terminal");
    const std::vector<float>& action = Golden("loss.action").data;
    for (std::size_t cell = 0; cell < batch_.prev_action.size(); ++cell) {
      batch_.prev_action[cell] = -1;
      for (std::size_t a = 0; a < kActions; ++a) {
        if (action[cell * kActions + a] != 0) batch_.prev_action[cell] = static_cast<int>(a);
      }
    }
  }

  // The golden samples, in the order in which the losses ask for them.
  static OneHotSampler Samples() {
    std::vector<Tensor> samples = GoldenTensor("loss.sample").unbind(0);
    const std::vector<Tensor> actions = GoldenTensor("loss.imagined_action").unbind(0);
    const std::vector<Tensor> states = GoldenTensor("loss.imagined_sample").unbind(0);
    for (std::size_t k = 0; k < kHorizon; ++k) {
      samples.push_back(actions[k]);
      samples.push_back(states[k]);
    }
    return [samples, next = std::size_t{0}](const Tensor& log_probs) mutable {
      EXPECT_EQ(log_probs.sizes(), samples.at(next).sizes());
      return samples[next++];
    };
  }

  const DreamerSettings settings_ = {.horizon = kHorizon};
  const EnvSpec env_ = testing::VectorEnv();
  const ParameterLayout layout_;
  std::vector<float> parameters_, gradients_, slow_parameters_;
  SequenceBatch batch_{env_, kSteps, kLanes, {.deter = kDeter, .stoch = kGroups}};
  DreamerRows rows_{SmallShape(), batch_};
};

// What losses are made of.
struct Followed {
  Followed(const DreamerModel& model, const DreamerHead& slow, const DreamerSettings& settings,
           const DreamerRows& rows, const OneHotSampler& sample)
      : world(ComputeWorldModelLoss(model, settings, rows, sample)),
        imagined(
            Imagine(model, world.deter.flatten(0, 1), world.stoch.flatten(0, 1), kHorizon, sample)),
        worth(ComputeImaginedWorth(model, slow, settings, imagined)) {}

  const WorldModelLoss world;
  const Imagination imagined;
  const ImaginedWorth worth;
};

void ExpectPart(const Tensor& part, const std::string& name) {
  const double want = Golden("loss.part." + name).data.front();
  EXPECT_NEAR(part.item<double>(), want, 1e-4 * std::abs(want)) << name;
}

TEST_F(GoldenLoss, PartsAndGradientsAreTheFormulas) {
  const DreamerModel model(SmallShape(), parameters_, gradients_);
  const DreamerHead slow = MakeDreamerCritic(SmallShape(), slow_parameters_);
  const auto [world, imagined, worth] = Followed(model, slow, settings_, rows_, Samples());
  ReturnScale scale(settings_.return_rate);
  scale.Update(
      {worth.returns.const_data_ptr<float>(), static_cast<std::size_t>(worth.returns.numel())});
  const BehaviourLoss behaviour = ComputeBehaviourLoss(
      model, slow, settings_, rows_, world, imagined, worth, torch::scalar_tensor(scale.scale()));
  ExpectPart(world.reconstruction, "reconstruction");
  ExpectPart(world.reward, "reward");
  ExpectPart(world.cont, "cont");
  ExpectPart(world.dynamics, "dynamics");
  ExpectPart(world.representation, "representation");
  ExpectPart(behaviour.policy, "policy");
  ExpectPart(behaviour.value, "value");
  ExpectPart(behaviour.replay_value, "replay_value");
  const Tensor total = world.reconstruction + world.reward + world.cont + world.dynamics +
                       0.1 * world.representation + behaviour.policy + behaviour.value +
                       0.3 * behaviour.replay_value;
  total.backward();
  for (const ParameterInfo& info : layout_) {
    double slope = 0;
    for (std::size_t i = 0; i < info.size; ++i) {
      slope += std::cos(static_cast<double>(i)) * gradients_[info.offset + i];
    }
    const double want = Golden("loss.slope." + info.name).data.front();
    EXPECT_NEAR(slope, want, 1e-3 * std::max(0.1, std::abs(want))) << info.name;
  }
}

TEST_F(GoldenLoss, ImaginationLeavesTheWorldModelAlone) {
  const DreamerModel model(SmallShape(), parameters_, gradients_);
  const DreamerHead slow = MakeDreamerCritic(SmallShape(), slow_parameters_);
  const auto [world, imagined, worth] = Followed(model, slow, settings_, rows_, Samples());
  const BehaviourLoss behaviour = ComputeBehaviourLoss(model, slow, settings_, rows_, world,
                                                       imagined, worth, torch::scalar_tensor(1.0));
  (behaviour.policy + behaviour.value).backward();
  for (const ParameterInfo& info : layout_) {
    double sum = 0;
    for (std::size_t i = 0; i < info.size; ++i) sum += std::abs(gradients_[info.offset + i]);
    const bool learns = info.name.starts_with("actor.") || info.name.starts_with("value.");
    EXPECT_EQ(sum > 0, learns) << info.name;
  }
}

}  // namespace
}  // namespace tetrion
