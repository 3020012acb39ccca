#include "lib/nn/dreamer/norm_silu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

// The same in double, one element at a time.
struct Reference {
  Reference(const std::vector<float>& x, const std::vector<float>& scale,
            const std::vector<float>& grad)
      : y(x.size()), grad_x(x.size()), grad_scale(scale.size()) {
    const std::size_t width = scale.size();
    for (std::size_t start = 0; start < x.size(); start += width) {
      double squares = 0, along = 0;
      for (std::size_t i = 0; i < width; ++i) squares += std::pow(x[start + i], 2.0);
      const double length = std::sqrt(squares / static_cast<double>(width) + 1e-4);
      std::vector<double> inner(width);
      for (std::size_t i = 0; i < width; ++i) {
        const double n = x[start + i] / length, a = n * scale[i], s = 1 / (1 + std::exp(-a));
        y[start + i] = a * s;
        const double slope = grad[start + i] * (s + a * s * (1 - s));
        grad_scale[i] += slope * n;
        inner[i] = slope * scale[i];
        along += inner[i] * n;
      }
      for (std::size_t i = 0; i < width; ++i) {
        const double n = x[start + i] / length;
        grad_x[start + i] = (inner[i] - n * along / static_cast<double>(width)) / length;
      }
    }
  }

  std::vector<double> y, grad_x, grad_scale;
};

class EveryWidth : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(EveryWidth, IsAsTheFormulaInDouble) {
  constexpr std::int64_t kRows = 3;
  const std::int64_t width = GetParam();
  const auto count = static_cast<std::size_t>(kRows * width);
  const std::vector<float> x = testing::Noise(count, 1), grad = testing::Noise(count, 2);
  const std::vector<float> scale = testing::Noise(static_cast<std::size_t>(width), 3);
  std::vector<float> y(count), slope(count), inverse(kRows), grad_x(count),
      grad_scale(scale.size());
  NormSiluForward(x.data(), kRows, width, scale.data(), y.data(), slope.data(), inverse.data());
  NormSiluBackward(grad.data(), x.data(), kRows, width, scale.data(), slope.data(), inverse.data(),
                   grad_x.data(), grad_scale.data());
  const Reference reference(x, scale, grad);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_NEAR(y[i], reference.y[i], 1e-5) << i;
    EXPECT_NEAR(grad_x[i], reference.grad_x[i], 1e-4 * (1 + std::abs(reference.grad_x[i]))) << i;
  }
  for (std::size_t i = 0; i < scale.size(); ++i) {
    EXPECT_NEAR(grad_scale[i], reference.grad_scale[i], 1e-5) << i;
  }
}

TEST_P(EveryWidth, TheResultIsTheSameWithoutItsSlope) {
  const std::int64_t width = GetParam();
  const auto count = static_cast<std::size_t>(width);
  const std::vector<float> x = testing::Noise(count, 1), scale = testing::Noise(count, 3);
  std::vector<float> y(count), alone(count), slope(count), inverse(1);
  NormSiluForward(x.data(), 1, width, scale.data(), y.data(), slope.data(), inverse.data());
  NormSiluForward(x.data(), 1, width, scale.data(), alone.data(), nullptr, inverse.data());
  EXPECT_EQ(y, alone);
}

INSTANTIATE_TEST_SUITE_P(NormSilu, EveryWidth, ::testing::Values(1, 5, 16, 63, 64, 65, 200));

}  // namespace
}  // namespace tetrion
