#include "lib/nn/dense_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using testing::Noise;

// Every table against plain loops in double.
class DenseKernelsTest : public ::testing::TestWithParam<const DenseKernels*> {
 protected:
  const DenseKernels& kernels() const { return *GetParam(); }
};

constexpr std::int64_t kColumns = 128;

// Both products of one shape, with rows that lie apart; what is between them stays as it was.
void ExpectProducts(const DenseKernels& kernels, std::int64_t m, std::int64_t k, std::int64_t n) {
  const std::int64_t ldx = k + 2, ldy = n + 3, ldw = n + 1;
  const auto x = Noise(static_cast<std::size_t>(m * ldx), 1);
  const auto w = Noise(static_cast<std::size_t>(k * ldw), 2);
  const auto y0 = Noise(static_cast<std::size_t>(m * ldy), 3);
  auto y = y0;
  kernels.multiply(x.data(), ldx, m, k, w.data(), ldw, n, y.data(), ldy);
  auto gradient = w;
  kernels.outer(x.data(), ldx, m, k, y0.data(), ldy, n, gradient.data(), ldw);
  const auto at = [](const std::vector<float>& v, std::int64_t i) {
    return static_cast<double>(v[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t c = 0; c < ldy; ++c) {
      double sum = at(y0, row * ldy + c);
      for (std::int64_t i = 0; i < k && c < n; ++i)
        sum += at(x, row * ldx + i) * at(w, i * ldw + c);
      ASSERT_NEAR(at(y, row * ldy + c), sum, c < n ? 1e-5 : 0.0) << m << " " << k << " " << n;
    }
  }
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t c = 0; c < ldw; ++c) {
      double sum = at(w, i * ldw + c);
      for (std::int64_t row = 0; row < m && c < n; ++row) {
        sum += at(x, row * ldx + i) * at(y0, row * ldy + c);
      }
      ASSERT_NEAR(at(gradient, i * ldw + c), sum, c < n ? 1e-5 : 0.0) << m << " " << k << " " << n;
    }
  }
}

TEST_P(DenseKernelsTest, ProductsMatchLoopsForEveryRemainderOfRowsAndColumns) {
  for (std::int64_t m : {0, 1, 4, 5, 6, 11, 30}) {
    for (std::int64_t k : {1, 3, 16, 48}) {
      for (std::int64_t n : {1, 7, 8, 9, 16, 17, 32, 47, 63, 64, 128, 255}) {
        ExpectProducts(kernels(), m, k, n);
      }
    }
  }
}

TEST_P(DenseKernelsTest, ProductsStartFromOneRowOrFromTheRowThatIsNamed) {
  constexpr std::int64_t kDepth = 17, kStarts = 3;
  for (const std::int64_t m : {1, 5, 6, 14}) {
    for (const std::int64_t n : {16, 64, 80}) {
      const auto size = static_cast<std::size_t>(m * n);
      const auto x = Noise(static_cast<std::size_t>(m * kDepth), 1);
      const auto w = Noise(static_cast<std::size_t>(kDepth * n), 2);
      const auto start = Noise(static_cast<std::size_t>(kStarts * n), 3);
      std::vector<std::int32_t> of;
      for (std::int64_t row = 0; row < m; ++row) of.push_back(static_cast<std::int32_t>(row % 3));
      for (const bool are_named : {false, true}) {
        const std::int32_t* named = are_named ? of.data() : nullptr;
        std::vector<float> y(size, 42.0F), expected(size);
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t row = i / static_cast<std::size_t>(n);
          const auto from = static_cast<std::size_t>(named == nullptr ? 0 : of[row]);
          expected[i] = start[from * static_cast<std::size_t>(n) + i % static_cast<std::size_t>(n)];
        }
        kernels().multiply_add(x.data(), kDepth, m, kDepth, w.data(), n, expected.data());
        kernels().multiply_from(start.data(), named, x.data(), kDepth, m, kDepth, w.data(), n,
                                y.data());
        ASSERT_EQ(y, expected) << m << " " << n;
      }
    }
  }
}

TEST_P(DenseKernelsTest, SiluAndItsSlopeAreAccurateFromTinyToHuge) {
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) x.push_back(static_cast<float>(i - 32) * 0.37F);
  for (int i = 0; i < 64; ++i)
    x.push_back(static_cast<float>((i % 2 == 0 ? 1 : -1) * std::pow(10.0, i % 12 - 6)));
  std::vector<float> y(x.size()), slope(x.size());
  kernels().silu(x.data(), 1, kColumns, y.data(), slope.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    EXPECT_NEAR(y[i], x[i] * sigmoid, 1e-6 * std::max(1.0, std::abs(static_cast<double>(x[i]))))
        << x[i];
    EXPECT_NEAR(slope[i], sigmoid * (1 + x[i] * (1 - sigmoid)), 2e-6) << x[i];
  }
}

TEST_P(DenseKernelsTest, NanIsNeverHidden) {
  std::vector<float> x(kColumns, 0.5F), y(kColumns);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  kernels().silu(x.data(), 1, kColumns, y.data(), nullptr);
  EXPECT_TRUE(std::isnan(y[7]));
  EXPECT_FALSE(std::isnan(y[8]));
}

TEST_P(DenseKernelsTest, DotItsBackwardAndColumnSumMatchLoops) {
  constexpr std::int64_t kRows = 7;
  const auto y = Noise(kRows * kColumns, 4), slope = Noise(kRows * kColumns, 5);
  const auto w = Noise(kColumns, 6), g = Noise(kRows, 7);
  std::vector<float> out(kRows), grad(kRows * kColumns), sum(kColumns, 1.0F);
  kernels().dot(y.data(), kRows, kColumns, w.data(), 0.25F, out.data());
  kernels().dot_backward(g.data(), kRows, kColumns, w.data(), slope.data(), grad.data());
  kernels().column_sum(y.data(), kRows, kColumns, sum.data());
  for (std::size_t row = 0; row < kRows; ++row) {
    double dot = 0.25;
    for (std::size_t c = 0; c < kColumns; ++c) {
      dot += static_cast<double>(y[row * kColumns + c]) * w[c];
      EXPECT_NEAR(grad[row * kColumns + c], g[row] * w[c] * slope[row * kColumns + c], 1e-6);
    }
    EXPECT_NEAR(out[row], dot, 1e-5);
  }
  double first = 1.0;
  for (std::size_t row = 0; row < kRows; ++row) first += y[row * kColumns];
  EXPECT_NEAR(sum[0], first, 1e-5);
}

// A product with a matrix of zeros and ones, of every count of ones.
TEST_P(DenseKernelsTest, SumsAndGradientsByBitsMatchTheProductsOfZerosAndOnes) {
  constexpr std::int64_t kRows = 67;
  for (const std::int64_t n : {16, 48, 64, 80, 128}) {
    std::vector<std::uint64_t> bits;
    std::vector<float> ones(kRows * 64);
    for (std::int64_t row = 0; row < kRows; ++row) {
      bits.push_back(row < 65 ? (row == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << row) - 1)
                              : 0x8000000000000001U);
      for (std::int64_t i = 0; i < 64; ++i) {
        ones[static_cast<std::size_t>(row * 64 + i)] = static_cast<float>(bits.back() >> i & 1);
      }
    }
    const auto w = Noise(static_cast<std::size_t>(64 * n), 8);
    auto y = Noise(static_cast<std::size_t>(kRows * n), 9), expected = y;
    kernels().sum_bits(bits.data(), kRows, w.data(), n, y.data());
    kernels().multiply_add(ones.data(), 64, kRows, 64, w.data(), n, expected.data());
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5) << n;
    auto gradient = w, expected_gradient = w;
    kernels().add_bits(bits.data(), kRows, y.data(), n, gradient.data());
    kernels().outer_add(ones.data(), 64, kRows, 64, y.data(), n, expected_gradient.data());
    for (std::size_t i = 0; i < w.size(); ++i) {
      ASSERT_NEAR(gradient[i], expected_gradient[i], 2e-4) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, DenseKernelsTest,
                         ::testing::Values(&BaselineDenseKernels(), &BestDenseKernels()),
                         [](const auto& info) {
                           return std::to_string(info.index) + "_" + std::string(info.param->name);
                         });

}  // namespace
}  // namespace tetrion
