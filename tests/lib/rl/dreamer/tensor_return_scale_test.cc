#include "lib/rl/dreamer/tensor_return_scale.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/rl/dreamer/return_scale.h"
#include "tests/lib/nn/test_envs.h"

// The scale by the tensor library against the plain one, which is tested against the formulas.
namespace tetrion {
namespace {

TEST(TensorReturnScale, FollowsReturnsAsThePlainOne) {
  constexpr double kRate = 0.25;
  ReturnScale plain(kRate);
  TensorReturnScale tensors(kRate, torch::kCPU);
  const torch::Tensor taken = torch::scalar_tensor(true, torch::kBool);
  for (const std::size_t count : {1U, 2U, 21U, 60U, 64U}) {
    std::vector<float> returns = testing::Noise(count, count);
    for (float& value : returns) value = 20 * value + 3;
    plain.Update(returns);
    EXPECT_NEAR(tensors.Follow(torch::tensor(returns)).item<double>(), plain.scale(), 1e-4);
    tensors.Keep(taken);
    EXPECT_NEAR(tensors.range()[0].item<double>(), plain.range().low, 1e-4);
    EXPECT_NEAR(tensors.range()[1].item<double>(), plain.range().high, 1e-4);
  }
  EXPECT_GT(plain.scale(), 2.0) << "above the least scale";
}

TEST(TensorReturnScale, AnUpdateThatIsNotTakenLeavesTheRange) {
  TensorReturnScale tensors(0.5, torch::kCPU);
  EXPECT_EQ(tensors.Follow(torch::full({4, 3}, 100.0F)).item<double>(), kLeastReturnScale);
  tensors.Keep(torch::scalar_tensor(false, torch::kBool));
  EXPECT_TRUE(tensors.range().equal(torch::zeros({2})));
}

}  // namespace
}  // namespace tetrion
