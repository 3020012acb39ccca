#include "lib/nn/dreamer/step_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/dreamer/fast_exp.h"
#include "lib/nn/dreamer/layer_nodes.h"
#include "lib/nn/dreamer/primitives.h"
#include "lib/nn/torch/use_threads.h"

namespace tetrion {
namespace {

using torch::Tensor;

// f32 takes the kernels, f64 the library's operations: both, and their slopes, must agree.

TEST(StepKernels, TheExponentialIsExactToAFewUnits) {
  for (float x = -79.0F; x < 79.0F; x += 0.37F) {
    EXPECT_NEAR(FastExp(x) / std::exp(static_cast<double>(x)), 1.0, 5e-7) << x;
  }
  EXPECT_EQ(FastExp(0.0F), 1.0F);
  EXPECT_TRUE(std::isfinite(FastExp(1000.0F)));
  EXPECT_TRUE(std::isnan(FastExp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(StepKernels, GatesAndTheirSlopesAreThoseOfTheOperations) {
  torch::manual_seed(1);
  const Tensor gates = (torch::randn({3, 60}) * 3).requires_grad_(true);
  const Tensor deter = torch::randn({3, 20}).requires_grad_(true), weights = torch::randn({3, 20});
  const Tensor exact_gates = gates.detach().to(torch::kFloat64).requires_grad_(true);
  const Tensor exact_deter = deter.detach().to(torch::kFloat64).requires_grad_(true);
  const Tensor out = GruStep(gates, deter, 4), exact = GruStep(exact_gates, exact_deter, 4);
  EXPECT_TRUE(torch::allclose(out.to(torch::kFloat64), exact, 1e-5, 1e-6));
  (out * weights).sum().backward();
  (exact * weights).sum().backward();
  EXPECT_TRUE(torch::allclose(gates.grad().to(torch::kFloat64), exact_gates.grad(), 1e-4, 1e-6));
  EXPECT_TRUE(torch::allclose(deter.grad().to(torch::kFloat64), exact_deter.grad(), 1e-4, 1e-6));
}

TEST(StepKernels, MixturesAndTheirSlopesAreThoseOfTheOperations) {
  torch::manual_seed(2);
  for (const std::int64_t classes : {2, 8, 19}) {
    const Tensor logits = (torch::randn({4, 3, classes}) * 5).requires_grad_(true);
    const Tensor weights = torch::randn({4, 3, classes});
    const Tensor exact_logits = logits.detach().to(torch::kFloat64).requires_grad_(true);
    const Tensor out = UnimixLogProbs(logits, 0.01), exact = UnimixLogProbs(exact_logits, 0.01);
    EXPECT_TRUE(torch::allclose(out.to(torch::kFloat64), exact, 1e-5, 1e-6)) << classes;
    (out * weights).sum().backward();
    (exact * weights).sum().backward();
    EXPECT_TRUE(torch::allclose(logits.grad().to(torch::kFloat64), exact_logits.grad(), 1e-4, 1e-5))
        << classes;
  }
}

TEST(StepKernels, GatesAreTheSameWhereNothingIsKeptForSlopes) {
  torch::manual_seed(3);
  const Tensor gates = torch::randn({5, 3 * 148}), deter = torch::randn({5, 148});  // blocks of 37
  const Tensor kept = GruStep(gates, deter, 4);
  const torch::NoGradGuard no_gradient;
  EXPECT_TRUE(torch::equal(GruStep(gates, deter, 4), kept));
}

// What `layer` makes of x, and its slope, with 1, 2 and 3 threads.
template <typename Layer>
void ExpectSameOnAllThreads(const Tensor& x, const Layer& layer) {
  Tensor first, first_slope;
  for (const int threads : {1, 2, 3}) {
    UseThreads(threads);
    const Tensor input = x.clone().requires_grad_(true);
    const Tensor out = layer(input);
    out.square().sum().backward();
    if (!first.defined()) first = out, first_slope = input.grad();
    EXPECT_TRUE(torch::equal(out, first)) << threads;
    EXPECT_TRUE(torch::equal(input.grad(), first_slope)) << threads;
  }
  UseThreads(1);
}

TEST(StepKernels, DoNotDependOnTheNumberOfThreads) {
  torch::manual_seed(4);
  constexpr std::int64_t kRows = 500;
  const Tensor deter = torch::randn({kRows, 148}), target = torch::randn({kRows}) * 10;
  ExpectSameOnAllThreads(torch::randn({kRows, 3 * 148}),
                         [&](const Tensor& gates) { return GruStep(gates, deter, 4); });
  ExpectSameOnAllThreads(torch::randn({kRows, 4, 6}),
                         [](const Tensor& logits) { return UnimixLogProbs(logits, 0.01); });
  ExpectSameOnAllThreads(torch::randn({kRows, kDreamerBins}), [&](const Tensor& logits) {
    return TwoHotLoss(logits, target, target + 1.0);
  });
}

TEST(StepKernels, NormAndActivationDoNotDependOnTheNumberOfThreads) {
  torch::manual_seed(8);
  const Tensor scale = torch::randn({16});
  // 375 rows of 16: two threads part them where no 64 floats end.
  ExpectSameOnAllThreads(torch::randn({375, 16}),
                         [&](const Tensor& x) { return NormSiluNode(x, scale); });
}

TEST(StepKernels, AChanceOfNothingHasALogarithm) {
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const Tensor logits = torch::tensor({{200.0, 0.0, -200.0}}, type).requires_grad_(true);
    const Tensor out = UnimixLogProbs(logits, 0.0);
    EXPECT_NEAR(out[0][0].item<double>(), 0.0, 1e-6);
    EXPECT_NEAR(out[0][2].item<double>(), -80.0, 1e-3);
    (out.exp() * out).sum().backward();
    EXPECT_TRUE(logits.grad().isfinite().all().item<bool>());
  }
}

TEST(StepKernels, ALogitThatIsNoNumberSpoilsItsGroupAlone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor out = UnimixLogProbs(torch::tensor({{0.0F, nan, 0.0F}, {1.0F, 2.0F, 3.0F}}), 0.01);
  EXPECT_TRUE(out[0].isnan().all().item<bool>());
  EXPECT_TRUE(out[1].isfinite().all().item<bool>());
}

}  // namespace
}  // namespace tetrion
