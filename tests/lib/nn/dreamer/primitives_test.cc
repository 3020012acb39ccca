#include "lib/nn/dreamer/primitives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "tests/lib/nn/dreamer/golden_tensors.h"
#include "tests/lib/nn/dreamer/unused_kernels.h"

namespace tetrion {
namespace {

using testing::ExpectGolden;
using testing::GoldenLeaf;
using testing::GoldenTensor;
using testing::HasGolden;
using torch::Tensor;

void ExpectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const Tensor flat = actual.detach().reshape(-1).to(torch::kFloat64);
  ASSERT_EQ(static_cast<std::size_t>(flat.numel()), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), expected[i], tolerance) << i;
  }
}

TEST(Symlog, IsAsTheFormula) {
  if (!HasGolden("symlog.x")) GTEST_SKIP() << testing::kNoCase;
  ExpectGolden(Symlog(GoldenTensor("symlog.x")), "symlog.result", 1e-6);
  ExpectGolden(Symexp(GoldenTensor("symexp.x")), "symexp.result", 1e-6);
  EXPECT_NEAR(Symlog(torch::tensor(-1000.0F)).item<double>(), -6.9087548, 1e-6);
}

TEST(Bins, AreTheTableBitForBit) {
  if (!HasGolden("bins")) GTEST_SKIP() << testing::kNoCase;
  const std::span<const float> bins = DreamerBins();
  EXPECT_EQ(std::vector<float>(bins.begin(), bins.end()), testing::Golden("bins").data);
  EXPECT_EQ(bins[127], 0.0F);
  EXPECT_EQ(bins[254], 485165194.41F);
  EXPECT_EQ(bins[128], 0.170557715F);
}

// By the kernels of the CPU, and by the operations that a device's update takes.
class TwoHot : public ::testing::TestWithParam<bool> {
 protected:
  TwoHot() {
    if (GetParam()) scope_.emplace(kernels_);
  }

 private:
  testing::UnusedKernels kernels_;
  std::optional<UpdateKernelsScope> scope_;
};
INSTANTIATE_TEST_SUITE_P(HostAndDevice, TwoHot, ::testing::Bool());

TEST_P(TwoHot, LossSlopeAndMeanAreAsTheFormula) {
  if (!HasGolden("two_hot.logits")) GTEST_SKIP() << testing::kNoCase;
  const Tensor logits = GoldenLeaf("two_hot.logits");
  const Tensor loss = TwoHotLoss(logits, GoldenTensor("two_hot.target"));
  ExpectGolden(loss, "two_hot.loss", 1e-5);
  loss.sum().backward();
  ExpectGolden(logits.grad(), "two_hot.slope", 1e-5);
  ExpectGolden(TwoHotMean(logits), "two_hot.mean", 1e-5);
}

TEST_P(TwoHot, MeetsTheAnchors) {
  const Tensor ramp = torch::linspace(-1, 1, 255).expand({5, 255});
  ExpectNear(TwoHotLoss(ramp, torch::tensor({0.0F, 0.5F, -3.5F, 100.0F, 1e9F})),
             {5.7039347, 5.6838136, 5.7789850, 5.4733090, 4.7039347}, 1e-5);
  EXPECT_NEAR(TwoHotMean(ramp[0]).item<double>() / 2.4558892e7, 1.0, 1e-5);
  EXPECT_EQ(TwoHotMean(torch::full({255}, 3.0F)).item<float>(), 0.0F);
}

// Also the last bin, behind which there is none to share with.
TEST_P(TwoHot, ATargetOnABinIsThatBinAlone) {
  const Tensor ramp = torch::linspace(-1, 1, 255).expand({1, 255});
  const Tensor log_probs = torch::log_softmax(ramp, -1);
  for (const std::int64_t bin : {0, 1, 126, 127, 128, 253, 254}) {
    const float target = DreamerBins()[static_cast<std::size_t>(bin)];
    EXPECT_NEAR(TwoHotLoss(ramp, torch::tensor({target})).item<float>(),
                -log_probs[0][bin].item<float>(), 1e-5)
        << bin;
  }
}

TEST_P(TwoHot, TwoTargetsAreTheSumOfTheirLosses) {
  const Tensor logits = torch::randn({4, 255}).requires_grad_(true);
  const Tensor one = torch::randn({4}), other = torch::randn({4}) * 50;
  const Tensor both = TwoHotLoss(logits, one, other);
  const Tensor apart = TwoHotLoss(logits, one) + TwoHotLoss(logits, other);
  EXPECT_TRUE(torch::allclose(both, apart));
  const Tensor weights = torch::randn({4});
  const Tensor slope = torch::autograd::grad({(both * weights).sum()}, {logits})[0];
  EXPECT_TRUE(torch::allclose(slope, torch::autograd::grad({(apart * weights).sum()}, {logits})[0],
                              1e-5, 1e-6));
}

TEST_P(TwoHot, ATargetThatIsNoNumberMakesTheLossNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(TwoHotLoss(torch::zeros({1, 255}), torch::tensor({nan})).item<float>()));
}

TEST(Norm, NormActivationAndSlopesAreAsTheFormula) {
  if (!HasGolden("norm.x")) GTEST_SKIP() << testing::kNoCase;
  const Tensor x = GoldenLeaf("norm.x"), scale = GoldenLeaf("norm.scale");
  ExpectGolden(RmsNorm(x, scale), "norm.result", 1e-5);
  const Tensor y = NormSilu(x, scale);
  ExpectGolden(y, "norm.silu", 1e-5);
  (y * GoldenTensor("norm.weights")).sum().backward();
  ExpectGolden(x.grad(), "norm.x_slope", 1e-5);
  ExpectGolden(scale.grad(), "norm.scale_slope", 1e-5);
  ExpectNear(RmsNorm(torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}), torch::ones(4)),
             {.3651459, .7302919, 1.0954379, 1.4605838}, 1e-6);
}

TEST(Norm, WithAShiftItIsLayerNorm) {
  const Tensor x = torch::randn({3, 8}, torch::kFloat64), scale = torch::randn(8, torch::kFloat64);
  const Tensor shift = torch::randn(8, torch::kFloat64);
  const Tensor centred = x - x.mean(-1, true);
  const Tensor normed =
      centred / torch::sqrt(centred.square().mean(-1, true) + kNormEpsilon) * scale + shift;
  EXPECT_TRUE(torch::allclose(NormSilu(x, scale, shift), torch::silu(normed)));
}

TEST(BlockLinear, IsAsTheFormula) {
  if (!HasGolden("block.weight")) GTEST_SKIP() << testing::kNoCase;
  ExpectGolden(
      BlockLinear(GoldenTensor("norm.x"), GoldenTensor("block.weight"), GoldenTensor("block.bias")),
      "block.result", 1e-5);
}

TEST(GruStep, MeetsTheAnchor) {
  const Tensor gates =
      torch::tensor({.1F, .2F, .3F, .4F, .5F, .6F, -.1F, -.2F, -.3F, -.4F, -.5F, -.6F});
  const Tensor deter = torch::tensor({.5F, -.5F, .25F, -.25F});
  ExpectNear(GruStep(gates.reshape({1, 12}), deter.reshape({1, 4}), 2),
             {.3702031, -.2124779, .1785714, -.2379297}, 1e-6);
}

TEST(Unimix, MeetsTheAnchorAndItsOwnDifferences) {
  ExpectNear(UnimixLogProbs(torch::tensor({1.0F, 2.0F, 3.0F, 4.0F}), 0.01),
             {-3.3744185, -2.4216740, -1.4396360, -0.4463260}, 1e-6);
  const Tensor logits = torch::randn({2, 5}, torch::kFloat64).requires_grad_(true);
  const Tensor weights = torch::randn({2, 5}, torch::kFloat64);
  const auto loss = [&](const Tensor& x) { return (UnimixLogProbs(x, 0.1) * weights).sum(); };
  const Tensor slope = torch::autograd::grad({loss(logits)}, {logits})[0];
  const Tensor along = torch::randn({2, 5}, torch::kFloat64);
  const double step = 1e-6;
  const torch::NoGradGuard guard;
  const Tensor difference =
      (loss(logits + step * along) - loss(logits - step * along)) / (2 * step);
  EXPECT_NEAR((slope * along).sum().item<double>(), difference.item<double>(), 1e-7);
}

TEST(StraightThrough, IsTheSampleWithTheSlopeOfTheProbabilities) {
  const Tensor log_probs = torch::randn({3, 4}).log_softmax(-1).requires_grad_(true);
  const Tensor sample = torch::eye(4).narrow(0, 0, 3), weights = torch::randn({3, 4});
  const Tensor out = StraightThrough(sample, log_probs);
  EXPECT_TRUE(out.equal(sample));
  (out * weights).sum().backward();
  EXPECT_TRUE(torch::allclose(log_probs.grad(), log_probs.exp() * weights));
}

TEST(Kl, LossesAndTheirSlopesAreAsTheFormula) {
  if (!HasGolden("kl.post")) GTEST_SKIP() << testing::kNoCase;
  const Tensor post = GoldenLeaf("kl.post"), prior = GoldenLeaf("kl.prior");
  const Tensor log_post = UnimixLogProbs(post, 0.01), log_prior = UnimixLogProbs(prior, 0.01);
  ExpectGolden(log_post, "kl.log_probs", 1e-5);
  ExpectGolden(CategoricalKl(log_post, log_prior), "kl.raw", 1e-5);
  const KlTerms terms = KlLosses(log_post, log_prior, 1.0);
  ExpectGolden(terms.dynamics, "kl.loss", 1e-5);
  ExpectGolden(terms.representation, "kl.loss", 1e-5);
  // Each half moves its own side alone.
  const auto slope = [](const Tensor& loss, const Tensor& x) {
    return torch::autograd::grad({loss.sum()}, {x}, {}, /*retain_graph=*/true, false,
                                 /*allow_unused=*/true)[0];
  };
  EXPECT_FALSE(slope(terms.dynamics, post).defined());
  EXPECT_FALSE(slope(terms.representation, prior).defined());
  ExpectGolden(slope(terms.dynamics, prior), "kl.prior_slope", 1e-5);
  ExpectGolden(slope(terms.representation, post), "kl.post_slope", 1e-5);
}

TEST(Kl, MeetsTheAnchor) {
  const Tensor post = torch::tensor({{2.0F, 0.0F, -1.0F}, {.5F, .5F, .5F}});
  const Tensor prior = torch::tensor({{0.0F, 0.0F, 0.0F}, {1.0F, -1.0F, 0.0F}});
  const auto kl = [&](double share) {
    return CategoricalKl(UnimixLogProbs(post, share), UnimixLogProbs(prior, share)).item<double>();
  };
  EXPECT_NEAR(kl(0.01), 0.8619258, 1e-6);
  EXPECT_NEAR(kl(0.0), 0.8833395, 1e-6);
}

}  // namespace
}  // namespace tetrion
