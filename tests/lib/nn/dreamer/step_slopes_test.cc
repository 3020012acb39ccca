#include "lib/nn/dreamer/step_slopes.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kSteps = 5;
constexpr std::int64_t kRows = 3;

// A layer whose output has its input's shape: x, the parameters, and who gathers -> x.
using Layer = std::function<Tensor(const Tensor&, const std::vector<Tensor>&, const StepSlopes&)>;

// Slopes of the parameters and, last, of the sequence's first state.
std::vector<Tensor> SlopesOf(const Layer& layer, const Tensor& start, const StepSlopes& steps,
                             const std::vector<Tensor>& parameters) {
  torch::manual_seed(2);
  const Tensor first = start.detach().clone().requires_grad_(true);
  Tensor state = first, loss = torch::zeros({}, start.options());
  for (int step = 0; step < kSteps; ++step) {
    state = layer(state, parameters, steps);
    loss = loss + (state * torch::randn(state.sizes(), state.options())).sum();
  }
  loss.backward();
  std::vector<Tensor> slopes;
  for (const Tensor& parameter : parameters) slopes.push_back(parameter.grad());
  slopes.push_back(first.grad());
  return slopes;
}

// `gather` makes the StepSlopes of the parameters.
void ExpectTheSameSlopes(const Layer& layer, const std::vector<Tensor>& values, std::int64_t width,
                         const std::function<StepSlopes(const std::vector<Tensor>&)>& gather) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {  // kernels of our own, the library
    torch::manual_seed(1);
    const Tensor start = torch::randn({kRows, width}, type);
    const auto leaves = [&] {
      std::vector<Tensor> copies;
      for (const Tensor& value : values) {
        copies.push_back(value.to(type).clone().requires_grad_(true));
      }
      return copies;
    };
    const std::vector<Tensor> by_step = leaves(), gathered = leaves();
    const StepSlopes steps = gather(gathered);
    ASSERT_TRUE(steps.gathers());
    const std::vector<Tensor> expected = SlopesOf(layer, start, {}, by_step);
    const std::vector<Tensor> actual = SlopesOf(layer, start, steps, gathered);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(actual[i].defined()) << i;
      EXPECT_TRUE(actual[i].allclose(expected[i], 1e-4, 1e-5))
          << i << ": " << actual[i] << expected[i];
    }
    EXPECT_TRUE(steps.kept()->slopes.empty()) << "taken once";
  }
}

TEST(StepSlopes, OfALinearLayerAreThoseOfItsSteps) {
  torch::manual_seed(3);
  ExpectTheSameSlopes([](const Tensor& x, const auto& p,
                         const StepSlopes& steps) { return Linear(x, p[0], p[1], steps); },
                      {torch::randn({6, 6}) / 3, torch::randn({6})}, 6,
                      [](const auto& p) { return GatherSlopes(p[0], p[1]); });
}

TEST(StepSlopes, OfAHiddenLayerHoldItsScale) {
  torch::manual_seed(4);
  ExpectTheSameSlopes(
      [](const Tensor& x, const auto& p, const StepSlopes& steps) {
        return HiddenLayer(x, p[0], p[1], p[2], {}, steps);
      },
      {torch::randn({8, 8}) / 3, torch::randn({8}), torch::randn({8})}, 8,
      [](const auto& p) { return GatherSlopes(p[0], p[1], p[2]); });
}

TEST(StepSlopes, OfABlockLayerAreThoseOfItsSteps) {
  torch::manual_seed(5);
  ExpectTheSameSlopes([](const Tensor& x, const auto& p,
                         const StepSlopes& steps) { return BlockLinear(x, p[0], p[1], {}, steps); },
                      {torch::randn({4, 3, 3}) / 3, torch::randn({12})}, 12,
                      [](const auto& p) { return GatherSlopes(p[0], p[1]); });
}

TEST(StepSlopes, OfABlockLayerHoldWhatItsBlocksShare) {
  torch::manual_seed(6);
  ExpectTheSameSlopes(
      [](const Tensor& x, const auto& p, const StepSlopes& steps) {
        const Tensor shared = torch::tanh(x.narrow(1, 0, 5));
        return NormSilu(BlockLinear(x, p[0], p[1], shared, steps), p[2], {}, steps);
      },
      {torch::randn({4, 3 + 5, 3}) / 3, torch::randn({12}), torch::randn({12})}, 12,
      [](const auto& p) { return GatherSlopes(p[0], p[1], p[2]); });
}

TEST(StepSlopes, OfAProductWithoutBiasAreThoseOfItsSteps) {
  torch::manual_seed(7);
  ExpectTheSameSlopes(
      [](const Tensor& x, const auto& p, const StepSlopes& steps) {
        return steps.gathers() ? StepLinear(x, p[0], {}, steps) : torch::linear(x, p[0]);
      },
      {torch::randn({6, 6}) / 3}, 6, [](const auto& p) { return GatherSlopes(p[0], {}); });
}

TEST(StepSlopes, GatherNothingWhereNoSlopeIsAskedFor) {
  const Tensor weight = torch::randn({4, 4}), bias = torch::randn({4});
  EXPECT_FALSE(GatherSlopes(weight, bias).gathers());
  const Tensor leaf = weight.clone().requires_grad_(true);
  EXPECT_TRUE(GatherSlopes(leaf, bias).gathers());
  const torch::NoGradGuard guard;
  EXPECT_FALSE(GatherSlopes(leaf, bias).gathers());
  EXPECT_FALSE(StepSlopes().gathers());
}

}  // namespace
}  // namespace tetrion
