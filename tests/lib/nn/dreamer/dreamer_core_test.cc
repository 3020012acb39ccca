#include "lib/nn/dreamer/dreamer_core.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/dreamer/primitives.h"
#include "tests/lib/nn/dreamer/golden_tensors.h"

namespace tetrion {
namespace {

using testing::ExpectGolden;
using testing::GoldenLeaf;
using testing::GoldenTensor;
using torch::Tensor;

DreamerShape SmallShape() {
  DreamerShape shape;
  shape.size = {.deter = 16, .units = 8, .stoch = 4, .classes = 4, .depth = 2, .blocks = 4};
  shape.floats = 4;
  shape.actions = 3;
  return shape;
}

// Follows 5 steps of 2 lanes, of which one begins an episode in the middle: deter and
// log-probabilities of a step by `core(deter, stoch, action)` and `posterior(deter, embed)`.
template <typename Core, typename Posterior>
void ExpectTheFormula(testing::GoldenParameters& parameters, const Tensor& embed, const Core& core,
                      const Posterior& posterior) {
  const Tensor start = GoldenLeaf("observe.deter");
  const Tensor action = GoldenTensor("observe.action"), first = GoldenTensor("observe.first");
  const Tensor sample = GoldenTensor("observe.sample");
  Tensor deter = start, stoch = GoldenTensor("observe.stoch");
  std::vector<Tensor> deters, stochs, log_probs;
  for (std::int64_t t = 0; t < action.size(0); ++t) {
    const Tensor keep = (1 - first[t]).unsqueeze(1);
    deter = core(deter * keep, stoch * keep.unsqueeze(2), action[t] * keep);
    log_probs.push_back(posterior(deter, embed[t]));
    stoch = StraightThrough(sample[t], log_probs.back());
    deters.push_back(deter);
    stochs.push_back(stoch);
  }
  ExpectGolden(torch::stack(deters), "observe.result.deter", 1e-5);
  ExpectGolden(torch::stack(log_probs), "observe.result.log_probs", 1e-5);
  ((torch::stack(deters) * GoldenTensor("observe.weight.deter")).sum() +
   (torch::stack(stochs) * GoldenTensor("observe.weight.stoch")).sum() +
   (torch::stack(log_probs) * GoldenTensor("observe.weight.log_probs")).sum())
      .backward();
  ExpectGolden(start.grad(), "observe.deter_slope", 1e-5);
  ExpectGolden(embed.grad(), "observe.embed_slope", 1e-5);
  parameters.ExpectGradients("observe.p.", "observe.slope.", 1e-5);
}

TEST(DreamerCore, ObservesAsTheFormulaWithAllItsSlopes) {
  if (!testing::HasGolden("observe.deter")) GTEST_SKIP() << testing::kNoCase;
  testing::GoldenParameters parameters(SmallShape(), "observe.p.");
  const DreamerModel model(SmallShape(), parameters.values, parameters.gradients);
  ExpectTheFormula(
      parameters, GoldenLeaf("observe.embed"),
      [&](const auto&... state) { return model.Core(state...); },
      [&](const auto&... state) { return model.PosteriorLogProbs(state...); });
}

TEST(DreamerCore, StepsOfASequenceHaveTheSlopesOfTheFormulaToo) {
  if (!testing::HasGolden("observe.deter")) GTEST_SKIP() << testing::kNoCase;
  testing::GoldenParameters parameters(SmallShape(), "observe.p.");
  const DreamerModel model(SmallShape(), parameters.values, parameters.gradients);
  const DreamerModel::Steps steps(model);
  ExpectTheFormula(
      parameters, GoldenLeaf("observe.embed"),
      [&](const Tensor& deter, const Tensor& stoch, const Tensor& action) {
        return steps.Core(deter, stoch, model.ActionTerm(action));
      },
      [&](const Tensor& deter, const Tensor& embed) {
        return steps.PosteriorLogProbs(deter, model.EmbedTerm(embed));
      });
}

TEST(DreamerCore, TheLengthOfALongActionDoesNotCount) {
  std::vector<float> values(FloatsOf(DreamerLayout(SmallShape())));
  FillDreamerInitial(SmallShape(), 1, values);
  const DreamerModel model(SmallShape(), values, {});
  const torch::NoGradGuard guard;
  const Tensor deter = torch::randn({1, 16}), stoch = torch::zeros({1, 4, 4});
  const Tensor action = torch::tensor({{0.0F, 1.0F, 0.0F}});
  EXPECT_TRUE(model.Core(deter, stoch, action * 7).equal(model.Core(deter, stoch, action)));
  EXPECT_FALSE(model.Core(deter, stoch, action * 0.5).equal(model.Core(deter, stoch, action)));
}

}  // namespace
}  // namespace tetrion
