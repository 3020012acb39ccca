#include "lib/nn/dreamer/dreamer_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr std::int64_t kActions = 3;

DreamerShape ShapeOf(DreamerInput input, std::int64_t floats) {
  DreamerShape shape;
  shape.size = DreamerSizeOf("nano");
  shape.input = input;
  shape.floats = floats;
  shape.actions = kActions;
  return shape;
}

// A model on buffers of its own, with initial values.
struct Owned {
  explicit Owned(const DreamerShape& shape)
      : parameters(FloatsOf(DreamerLayout(shape))),
        gradients(parameters.size()),
        model(shape, parameters, gradients) {
    FillDreamerInitial(shape, 5, parameters);
  }

  std::vector<float> parameters, gradients;
  DreamerModel model;
};

Tensor OneHot(const std::vector<std::int64_t>& shape, std::int64_t classes) {
  return torch::one_hot(torch::randint(classes, shape), classes).to(torch::kFloat32);
}

// One step of everything: encode, core, posterior, prior, all heads.
struct Step {
  Step(const DreamerModel& model, std::int64_t rows) {
    const DreamerShape& shape = model.shape();
    const DreamerSize& size = shape.size;
    view = torch::randn({rows, shape.floats}).sigmoid();
    if (shape.input == DreamerInput::kPlanes) view = view.round();
    embed = model.Encode(view);
    deter = model.Core(torch::randn({rows, size.deter}) * 0.5,
                       OneHot({rows, size.stoch}, size.classes), OneHot({rows}, kActions));
    posterior = model.PosteriorLogProbs(deter, embed);
    prior = model.PriorLogProbs(deter);
    stoch = StraightThrough(OneHot({rows, size.stoch}, size.classes), posterior);
    feature = model.Feature(deter, stoch);
    prediction = model.Decode(feature);
  }

  Tensor Loss(const DreamerModel& model) const {
    const KlTerms kl = KlLosses(posterior, prior, 0.0);
    const Tensor target = torch::full({feature.size(0)}, 0.5);
    return (model.ReconstructionLoss(prediction, view) + kl.dynamics + kl.representation +
            TwoHotLoss(model.RewardLogits(feature), target) +
            TwoHotLoss(model.ValueLogits(feature), target) + model.ContinueLogit(feature) +
            model.ActorLogProbs(feature).select(-1, 0))
        .sum();
  }

  Tensor view, embed, deter, posterior, prior, stoch, feature, prediction;
};

class EveryView : public ::testing::TestWithParam<DreamerInput> {
 protected:
  DreamerShape shape_ = ShapeOf(GetParam(), GetParam() == DreamerInput::kPixels ? 72 * 80 : 12);
};

TEST_P(EveryView, HasTheShapesItsCommentsSay) {
  torch::manual_seed(1);
  Owned owned(shape_);
  const Step step(owned.model, 4);
  EXPECT_EQ(step.embed.sizes(), torch::IntArrayRef({4, shape_.embed_floats()}));
  EXPECT_EQ(step.deter.sizes(), torch::IntArrayRef({4, 256}));
  EXPECT_EQ(step.posterior.sizes(), torch::IntArrayRef({4, 16, 8}));
  EXPECT_EQ(step.prior.sizes(), torch::IntArrayRef({4, 16, 8}));
  EXPECT_EQ(step.feature.sizes(), torch::IntArrayRef({4, 384}));
  EXPECT_EQ(step.prediction.sizes(), step.view.sizes());
  EXPECT_EQ(owned.model.ReconstructionLoss(step.prediction, step.view).sizes(),
            torch::IntArrayRef({4}));
  EXPECT_EQ(owned.model.RewardLogits(step.feature).sizes(), torch::IntArrayRef({4, 255}));
  EXPECT_EQ(owned.model.ContinueLogit(step.feature).sizes(), torch::IntArrayRef({4}));
  EXPECT_EQ(owned.model.ActorLogProbs(step.feature).sizes(), torch::IntArrayRef({4, kActions}));
}

TEST_P(EveryView, ARowDoesNotDependOnHowItsBatchIsFolded) {
  torch::manual_seed(2);
  Owned owned(shape_);
  const torch::NoGradGuard guard;
  const Tensor view = torch::randn({6, shape_.floats}).sigmoid();
  const Tensor embed = owned.model.Encode(view);
  EXPECT_TRUE(torch::allclose(owned.model.Encode(view.reshape({2, 3, -1})),
                              embed.reshape({2, 3, -1}), 1e-5, 1e-6));
  const Tensor feature = torch::randn({6, shape_.feature_floats()});
  EXPECT_TRUE(torch::allclose(owned.model.Decode(feature.reshape({3, 2, -1})),
                              owned.model.Decode(feature).reshape({3, 2, -1}), 1e-5, 1e-5));
}

TEST_P(EveryView, BackwardReachesEveryPieceOfTheFlatBuffer) {
  torch::manual_seed(3);
  Owned owned(shape_);
  Step(owned.model, 8).Loss(owned.model).backward();
  for (const ParameterInfo& info : DreamerLayout(shape_)) {
    // The last layers of reward and value are zero: nothing passes them to their hidden layers.
    const bool behind_zero = (info.name.starts_with("reward") || info.name.starts_with("value")) &&
                             info.name.find(".out.") == std::string::npos;
    double squares = 0;
    for (std::size_t i = 0; i < info.size; ++i) {
      squares += std::pow(static_cast<double>(owned.gradients[info.offset + i]), 2);
    }
    EXPECT_TRUE(std::isfinite(squares)) << info.name;
    EXPECT_EQ(squares > 0, !behind_zero) << info.name;
  }
}

TEST_P(EveryView, BeginsWithoutAnOpinion) {
  torch::manual_seed(4);
  Owned owned(shape_);
  const torch::NoGradGuard guard;
  const Step step(owned.model, 16);
  const Tensor reward = owned.model.RewardLogits(step.feature);
  const Tensor target = torch::linspace(-3, 3, 16);
  EXPECT_TRUE(TwoHotMean(reward).equal(torch::zeros(16)));
  EXPECT_TRUE(TwoHotMean(owned.model.ValueLogits(step.feature)).equal(torch::zeros(16)));
  EXPECT_TRUE(torch::allclose(TwoHotLoss(reward, target), torch::full({16}, std::log(255.0))));
  // A third each, but for the small last layer of the actor.
  EXPECT_TRUE(torch::allclose(owned.model.ActorLogProbs(step.feature).exp(),
                              torch::full({16, kActions}, 1.0 / kActions), 0.0, 0.05));
}

TEST_P(EveryView, TheActingPrefixActsAsTheWholeModel) {
  torch::manual_seed(5);
  Owned owned(shape_);
  const torch::NoGradGuard guard;
  std::vector<float> prefix(
      owned.parameters.begin(),
      owned.parameters.begin() + static_cast<std::ptrdiff_t>(ActingFloats(shape_)));
  const DreamerModel acting(shape_, prefix, {});
  const Step step(owned.model, 4);
  EXPECT_TRUE(acting.Encode(step.view).equal(step.embed));
  EXPECT_TRUE(acting.PosteriorLogProbs(step.deter, step.embed).equal(step.posterior));
  EXPECT_TRUE(acting.ActorLogits(step.feature).equal(owned.model.ActorLogits(step.feature)));
  const Tensor stoch = step.stoch, action = OneHot({4}, kActions);
  EXPECT_TRUE(
      acting.Core(step.deter, stoch, action).equal(owned.model.Core(step.deter, stoch, action)));
}

INSTANTIATE_TEST_SUITE_P(Dreamer, EveryView,
                         ::testing::Values(DreamerInput::kVector, DreamerInput::kPlanes,
                                           DreamerInput::kPixels));

}  // namespace
}  // namespace tetrion
