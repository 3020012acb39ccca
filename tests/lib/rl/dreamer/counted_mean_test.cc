#include "lib/rl/dreamer/counted_mean.h"

#include <gtest/gtest.h>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using torch::Tensor;

Tensor NoiseOf(at::IntArrayRef shape) {
  const auto count = static_cast<std::size_t>(c10::multiply_integers(shape));
  return torch::tensor(testing::Noise(count, 1)).view(shape);
}

TEST(CountedMean, IsThePlainOneWhereAllRowsCount) {
  const CountedMean mean(torch::ones({9, 7}));
  const Tensor values = NoiseOf({9, 7}), same = values.clone();
  values.requires_grad_();
  same.requires_grad_();
  const Tensor got = mean.Of(values), want = same.mean();
  EXPECT_TRUE(torch::equal(got, want));
  got.backward();
  want.backward();
  EXPECT_TRUE(torch::equal(values.grad(), same.grad()));
  const Tensor imagined = NoiseOf({5, 63});
  EXPECT_TRUE(torch::equal(CountedMean(torch::ones({63})).Of(imagined), imagined.mean()));
}

TEST(CountedMean, LeavesOutWhatDoesNotCount) {
  const Tensor counts = torch::tensor({1.0F, 0.0F, 1.0F});
  const CountedMean mean(counts);
  const Tensor values = torch::tensor({{1.0F, 1e30F, 2.0F}, {4.0F, -7.0F, 5.0F}});
  values.requires_grad_();
  const Tensor got = mean.Of(values);
  EXPECT_EQ(got.item<float>(), 3.0F);
  got.backward();
  EXPECT_TRUE(torch::equal(values.grad(), (counts / 4).expand({2, 3})));
}

TEST(CountedMean, IsZeroWhereNothingCounts) {
  EXPECT_EQ(CountedMean(torch::zeros({4})).Of(NoiseOf({4})).item<float>(), 0.0F);
}

}  // namespace
}  // namespace tetrion
