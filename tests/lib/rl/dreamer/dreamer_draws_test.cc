#include "lib/rl/dreamer/dreamer_draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lib/nn/torch/use_threads.h"

namespace tetrion {
namespace {

using torch::Tensor;

TEST(DreamerDraws, ClassesComeAsOftenAsTheirProbabilitiesSay) {
  constexpr std::int64_t kRows = 20000;
  const Tensor probs = torch::tensor({0.1F, 0.6F, 0.0F, 0.3F});
  const Tensor sample = MakeUpdateSampler(7, 1)(probs.log().expand({kRows, 4}));
  EXPECT_TRUE(torch::equal(sample.sum(-1), torch::ones({kRows})));
  const Tensor share = sample.mean(0);
  EXPECT_TRUE(torch::allclose(share, probs, /*rtol=*/0.0, /*atol=*/0.015)) << share;
  EXPECT_EQ(share[2].item<float>(), 0.0F);
}

TEST(DreamerDraws, AnUpdateRepeatsAndItsCallsDiffer) {
  const Tensor even = torch::zeros({64, 3, 8}) - std::log(8.0F);
  const OneHotSampler first = MakeUpdateSampler(1, 5), again = MakeUpdateSampler(1, 5);
  const Tensor a = first(even), b = first(even);
  EXPECT_EQ(a.sizes(), even.sizes());
  EXPECT_TRUE(torch::equal(a, again(even)));
  EXPECT_TRUE(torch::equal(b, again(even)));
  EXPECT_FALSE(torch::equal(a, b));
  EXPECT_FALSE(torch::equal(a, MakeUpdateSampler(1, 6)(even)));
  EXPECT_FALSE(torch::equal(a, MakeUpdateSampler(2, 5)(even)));
}

TEST(DreamerDraws, DoNotDependOnTheNumberOfThreads) {
  const Tensor even = torch::zeros({3001, 8}) - std::log(8.0F);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3}) {
    UseThreads(threads);
    const OneHotSampler sample = MakeUpdateSampler(1, 5);
    const Tensor a = sample(even), b = sample(even);
    if (first.empty()) first = {a, b};
    EXPECT_TRUE(torch::equal(a, first[0])) << threads;
    EXPECT_TRUE(torch::equal(b, first[1])) << threads;
  }
  UseThreads(1);
}

TEST(DreamerDraws, NumbersThatAreNotFiniteStillDrawAClass) {
  const Tensor spoiled = torch::full({2, 4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(torch::equal(MakeUpdateSampler(1, 1)(spoiled).sum(-1), torch::ones({2})));
}

TEST(DreamerDraws, ASampleCarriesNoGradient) {
  const Tensor log_probs = torch::zeros({2, 4}).requires_grad_(true);
  EXPECT_FALSE(MakeUpdateSampler(1, 1)(log_probs).requires_grad());
}

}  // namespace
}  // namespace tetrion
