#include "lib/rl/dreamer/tensor_laprop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "tests/lib/nn/test_envs.h"

// LaProp by the tensor library against the plain one, which is tested against the formulas.
namespace tetrion {
namespace {

using torch::Tensor;

// One piece that is clipped, one that is not, one of zeros.
const ParameterLayout kLayout = {{.name = "a", .shape = {40}, .offset = 0, .size = 40},
                                 {.name = "b", .shape = {3, 5}, .offset = 40, .size = 15},
                                 {.name = "c", .shape = {4}, .offset = 55, .size = 4}};
constexpr std::size_t kFloats = 59;

std::vector<float> Gradients(std::uint64_t seed) {
  std::vector<float> gradients = testing::Noise(kFloats, seed);
  for (std::size_t i = 40; i < 55; ++i) gradients[i] *= 1e-3F;
  return gradients;
}
std::vector<float> Parameters() {
  std::vector<float> parameters = testing::Noise(kFloats, 1);
  std::fill(parameters.begin() + 55, parameters.end(), 0.0F);
  return parameters;
}
std::span<const float> Values(const Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}
void ExpectNear(const Tensor& tensor, std::span<const float> values, const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(Values(tensor)[i], values[i], 2e-5 * std::max(1e-3F, std::abs(values[i])))
        << what << " " << i;
  }
}

const Tensor kReady = torch::scalar_tensor(true, torch::kBool);

TEST(TensorLaProp, StepsArePlainOnes) {
  for (const LaPropConfig& config :
       {LaPropConfig{.learning_rate = 1e-2, .warmup_updates = 3},
        LaPropConfig{.learning_rate = 1e-2, .warmup_updates = 0, .agc = 0, .beta1 = 0.5}}) {
    std::vector<float> plain = Parameters();
    LaProp optimiser(config, kLayout);
    const Tensor parameters = torch::tensor(plain), gradients = torch::zeros({kFloats});
    TensorLaProp tensors(config, kLayout, parameters, gradients);
    for (std::uint64_t n = 0; n < 6; ++n) {
      const std::vector<float> slope = Gradients(10 + n);
      gradients.copy_(torch::tensor(slope));
      const LaPropStep step = optimiser.Step(plain, slope);
      const TensorLaProp::Step taken = tensors.Take(kReady);
      EXPECT_TRUE(taken.taken.item<bool>());
      EXPECT_NEAR(taken.norms.norm().item<double>(), step.grad_norm, 1e-5 * step.grad_norm);
      ExpectNear(parameters, plain, "parameter");
      ExpectNear(tensors.mean(), optimiser.mean(), "mean");
      ExpectNear(tensors.square(), optimiser.square(), "square");
      EXPECT_EQ(tensors.steps().item<std::int64_t>(), optimiser.steps());
    }
  }
}

TEST(TensorLaProp, ANormThatNoFloatHoldsIsToldAsTakenWhereItsStepWas) {
  const LaPropConfig config = {.learning_rate = 1e-2, .warmup_updates = 0};
  std::vector<float> plain = Parameters(), slope(kFloats, 3e38F);
  LaProp optimiser(config, kLayout);
  const Tensor parameters = torch::tensor(plain), gradients = torch::tensor(slope);
  TensorLaProp tensors(config, kLayout, parameters, gradients);
  EXPECT_EQ(optimiser.Step(plain, slope).problem, "");
  const TensorLaProp::Step step = tensors.Take(kReady);
  EXPECT_TRUE(step.taken.item<bool>());
  EXPECT_TRUE(step.norms.isfinite().all().item<bool>());
  ExpectNear(parameters, plain, "parameter");
}

TEST(TensorLaProp, AStepThatIsForbiddenChangesNothing) {
  const Tensor parameters = torch::tensor(Parameters()), gradients = torch::zeros({kFloats});
  TensorLaProp tensors({.learning_rate = 1e-2, .warmup_updates = 0}, kLayout, parameters,
                       gradients);
  gradients.copy_(torch::tensor(Gradients(2)));
  EXPECT_TRUE(tensors.Take(kReady).taken.item<bool>());
  const Tensor before = parameters.clone(), mean = tensors.mean().clone(),
               square = tensors.square().clone();
  const auto expect_nothing = [&](const TensorLaProp::Step& step) {
    EXPECT_FALSE(step.taken.item<bool>());
    EXPECT_TRUE(parameters.equal(before));
    EXPECT_TRUE(tensors.mean().equal(mean));
    EXPECT_TRUE(tensors.square().equal(square));
    EXPECT_EQ(tensors.steps().item<std::int64_t>(), 1);
  };
  gradients.copy_(torch::tensor(Gradients(3)));
  expect_nothing(tensors.Take(torch::scalar_tensor(false, torch::kBool)));
  gradients[41] = std::numeric_limits<float>::infinity();
  const TensorLaProp::Step step = tensors.Take(kReady);
  expect_nothing(step);
  EXPECT_TRUE(std::isfinite(step.norms[0].item<float>()));
  EXPECT_TRUE(std::isnan(step.norms[1].item<float>())) << "the piece that forbids it";
}

}  // namespace
}  // namespace tetrion
