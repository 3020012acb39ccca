#include "lib/nn/dreamer/dreamer_dream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lib/nn/dreamer/draw_latents.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/dreamer/primitives.h"
#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kRows = 7, kContext = 3;
constexpr std::uint64_t kSeed = 5;

// A model whose heads all say something, and rows for it.
class DreamerDreamTest : public ::testing::TestWithParam<EnvSpec (*)()> {
 protected:
  DreamerDreamTest() {
    FillDreamerInitial(shape_, 3, dream_.parameters());
    const ParameterLayout layout = DreamerLayout(shape_);
    for (const char* head : {"reward", "continue"}) {
      const DreamerSlice slice = DreamerModule(layout, head);
      const std::vector<float> noise = testing::Noise(slice.size, slice.offset);
      std::copy(noise.begin(), noise.end(), dream_.parameters().begin() + slice.offset);
    }
    view_ = testing::Noise(static_cast<std::size_t>(kRows * shape_.floats), 11);
    if (shape_.input != DreamerInput::kVector) {
      for (float& x : view_) x = x > 0 ? 1.0F : 0.0F;
    }
    for (int row = 0; row < kRows; ++row) action_.push_back(row % 2);
  }
  DreamtRows Dream(int context = kContext) {
    return dream_.Dream({.rows = kRows, .view = view_.data(), .action = action_.data()}, context,
                        kSeed);
  }
  float* Row(int row) { return &view_[static_cast<std::size_t>(row * shape_.floats)]; }

  const DreamerShape shape_ = DreamerShapeOf(GetParam()(), "nano");
  DreamerDream dream_{shape_};
  std::vector<float> view_;
  std::vector<std::int32_t> action_;
};

// The same, step by step as the losses do it.
TEST_P(DreamerDreamTest, SeesTheContextAndImaginesTheRestFromTheActions) {
  const DreamtRows dreamt = Dream();
  const DreamerModel model(shape_, dream_.parameters(), {});
  const torch::NoGradGuard no_gradient;
  const std::int64_t groups = shape_.size.stoch, classes = shape_.size.classes;
  Tensor deter = torch::zeros({1, shape_.size.deter}), stoch = torch::zeros({1, groups, classes});
  for (int row = 0; row < kRows; ++row) {
    const Tensor before = torch::zeros({1, shape_.actions});
    if (row > 0) before[0][action_[static_cast<std::size_t>(row - 1)]] = 1.0F;
    deter = model.Core(deter, stoch, before);
    const Tensor view = torch::from_blob(Row(row), {1, shape_.floats});
    const Tensor log_probs = row < kContext ? model.PosteriorLogProbs(deter, model.Encode(view))
                                            : model.PriorLogProbs(deter);
    std::vector<std::uint8_t> drawn(static_cast<std::size_t>(groups));
    DrawLatents({.seed = kSeed, .step = static_cast<std::uint32_t>(row)},
                log_probs.contiguous().const_data_ptr<float>(), static_cast<std::uint32_t>(groups),
                static_cast<std::uint32_t>(classes), drawn.data());
    stoch = torch::zeros({1, groups, classes});
    for (std::int64_t g = 0; g < groups; ++g) stoch[0][g][drawn[static_cast<std::size_t>(g)]] = 1;
    const Tensor feature = model.Feature(deter, stoch), decoded = model.Decode(feature);
    const auto at = static_cast<std::size_t>(row);
    EXPECT_NEAR(dreamt.reward[at], TwoHotMean(model.RewardLogits(feature)).item<double>(),
                1e-4 * std::abs(dreamt.reward[at]) + 1e-5);
    EXPECT_NEAR(dreamt.cont[at], torch::sigmoid(model.ContinueLogit(feature)).item<double>(), 1e-5);
    EXPECT_NEAR(dreamt.loss[at], model.ReconstructionLoss(decoded, view).item<double>(),
                1e-4 * dreamt.loss[at]);
    const float first = decoded.reshape({-1})[0].item<float>();
    const float expected = shape_.input == DreamerInput::kVector
                               ? std::copysign(std::expm1(std::abs(first)), first)
                           : shape_.input == DreamerInput::kPlanes ? 1 / (1 + std::exp(-first))
                                                                   : first;
    EXPECT_NEAR(dreamt.view[at * static_cast<std::size_t>(shape_.floats)], expected, 1e-4);
  }
}

TEST_P(DreamerDreamTest, WhatIsNotSeenChangesNothing) {
  const DreamtRows before = Dream();
  std::fill(Row(kContext), Row(kContext) + (kRows - kContext) * shape_.floats, 0.0F);
  EXPECT_EQ(Dream().view, before.view);
  // All of the row: of a few numbers the same states may be drawn.
  for (float* x = Row(kContext - 1); x != Row(kContext); ++x) *x = 1 - *x;
  EXPECT_NE(Dream().view, before.view);
}

TEST_P(DreamerDreamTest, ActionsChangeTheRowsBehindThem) {
  const DreamtRows before = Dream();
  action_[kContext] = 1 - action_[kContext];
  const DreamtRows after = Dream();
  const auto same = static_cast<std::ptrdiff_t>((kContext + 1) * shape_.floats);
  EXPECT_TRUE(std::equal(before.view.begin(), before.view.begin() + same, after.view.begin()));
  EXPECT_FALSE(
      std::equal(before.view.begin() + same, before.view.end(), after.view.begin() + same));
  action_[kRows - 1] = 1 - action_[kRows - 1];
  EXPECT_EQ(Dream().view, after.view) << "no row follows the last action";
}

INSTANTIATE_TEST_SUITE_P(Views, DreamerDreamTest,
                         ::testing::Values(testing::VectorEnv, testing::PlanesEnv));

}  // namespace
}  // namespace tetrion
