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
    const auto starts = static_cast<std::int64_t>(count);
    const torch::Tensor scale =
        tensors.Follow(torch::tensor(returns).view({1, starts}), torch::ones({starts}));
    EXPECT_NEAR(scale.item<double>(), plain.scale(), 1e-4);
    tensors.Keep(taken);
    EXPECT_NEAR(tensors.range()[0].item<double>(), plain.range().low, 1e-4);
    EXPECT_NEAR(tensors.range()[1].item<double>(), plain.range().high, 1e-4);
  }
  EXPECT_GT(plain.scale(), 2.0) << "above the least scale";
}

TEST(TensorReturnScale, ReturnsOfStartsThatDoNotCountAreLeftOut) {
  constexpr double kRate = 1.0;
  constexpr std::int64_t kHorizon = 3, kStarts = 9;
  const torch::Tensor returns =
      torch::tensor(testing::Noise(kHorizon * kStarts, 1)).view({kHorizon, kStarts}) * 20;
  for (std::int64_t counted = 1; counted <= kStarts; ++counted) {
    TensorReturnScale tensors(kRate, torch::kCPU);
    ReturnScale plain(kRate);
    // Every second start, then the others: those that do not count lie between those that do.
    const torch::Tensor counts = torch::zeros({kStarts});
    std::vector<torch::Tensor> kept;
    for (std::int64_t i = 0; i < counted; ++i) {
      const std::int64_t start = 2 * i % kStarts;
      counts[start] = 1.0F;
      kept.push_back(returns.select(1, start));
    }
    const torch::Tensor all = torch::stack(kept).contiguous();
    plain.Update({all.const_data_ptr<float>(), static_cast<std::size_t>(all.numel())});
    for (const float other : {-1e6F, 0.0F, 1e6F}) {
      const torch::Tensor others = (1 - counts) * other;
      EXPECT_NEAR(tensors.Follow(returns * counts + others, counts).item<double>(), plain.scale(),
                  1e-4)
          << counted << " beside " << other;
    }
  }
}

TEST(TensorReturnScale, AnUpdateThatIsNotTakenLeavesTheRange) {
  TensorReturnScale tensors(0.5, torch::kCPU);
  EXPECT_EQ(tensors.Follow(torch::full({4, 3}, 100.0F), torch::ones({3})).item<double>(),
            kLeastReturnScale);
  tensors.Keep(torch::scalar_tensor(false, torch::kBool));
  EXPECT_TRUE(tensors.range().equal(torch::zeros({2})));
}

}  // namespace
}  // namespace tetrion
