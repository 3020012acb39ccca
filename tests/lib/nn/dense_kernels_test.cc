#include "lib/nn/dense_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "lib/nn/categorical.h"
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
  kernels.multiply(nullptr, x.data(), ldx, m, k, w.data(), ldw, n, y.data(), ldy);
  const float* bias = y0.data();  // its first row, for all rows
  auto from_bias = y0;
  kernels.multiply(bias, x.data(), ldx, m, k, w.data(), ldw, n, from_bias.data(), ldy);
  auto gradient = w;
  kernels.outer(x.data(), ldx, m, k, y0.data(), ldy, n, gradient.data(), ldw);
  const auto at = [](const std::vector<float>& v, std::int64_t i) {
    return static_cast<double>(v[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t c = 0; c < ldy; ++c) {
      const bool inside = c < n;
      double sum = 0;
      for (std::int64_t i = 0; i < k && inside; ++i) {
        sum += at(x, row * ldx + i) * at(w, i * ldw + c);
      }
      const double before = at(y0, row * ldy + c), start = inside ? at(y0, c) : before;
      const double bound = inside ? 1e-5 : 0.0;
      ASSERT_NEAR(at(y, row * ldy + c), before + sum, bound) << m << " " << k << " " << n;
      ASSERT_NEAR(at(from_bias, row * ldy + c), start + sum, bound) << m << " " << k << " " << n;
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

// What a product of packed weights starts from.
enum class Start { kZeros, kOneRow, kNamedRows };

// x [m, k] times packed w [k, n], against sums in double: off by at most what the table says, of
// the sum of the products' absolute values.
void ExpectPackedProduct(const DenseKernels& kernels, std::int64_t m, std::int64_t k,
                         std::int64_t n, Start kind) {
  constexpr std::int64_t kStarts = 3;
  const auto at = [](const std::vector<float>& v, std::int64_t i) {
    return static_cast<double>(v[static_cast<std::size_t>(i)]);
  };
  const std::int64_t ldx = k + 3;
  const auto x = Noise(static_cast<std::size_t>(m * ldx), 1);
  const auto w = Noise(static_cast<std::size_t>(k * n), 2);
  const auto start = Noise(static_cast<std::size_t>(kStarts * n), 3);
  std::vector<std::int32_t> of;
  for (std::int64_t row = 0; row < m; ++row) of.push_back(static_cast<std::int32_t>(row % kStarts));
  PackedWeights packed(kernels, k, n);
  packed.Pack(w.data());
  std::vector<float> y(static_cast<std::size_t>(m * n), 42.0F), alone(static_cast<std::size_t>(n));
  const float* from = kind == Start::kZeros ? nullptr : start.data();
  const std::int32_t* named = kind == Start::kNamedRows ? of.data() : nullptr;
  packed.Multiply(from, named, x.data(), ldx, m, y.data());
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t c = 0; c < n; ++c) {
      double sum = kind == Start::kZeros    ? 0.0
                   : kind == Start::kOneRow ? at(start, c)
                                            : at(start, row % kStarts * n + c);
      double size = std::abs(sum);
      for (std::int64_t i = 0; i < k; ++i) {
        sum += at(x, row * ldx + i) * at(w, i * n + c);
        size += std::abs(at(x, row * ldx + i) * at(w, i * n + c));
      }
      ASSERT_NEAR(at(y, row * n + c), sum, size * kernels.packed_error)
          << m << " " << k << " " << n;
    }
    // The same row, and no other in the call.
    packed.Multiply(from, named == nullptr ? nullptr : named + row, x.data() + row * ldx, ldx, 1,
                    alone.data());
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), y.begin() + row * n)) << row;
  }
}

TEST_P(DenseKernelsTest, PackedProductsMatchLoopsWhateverTheyStartFrom) {
  for (const std::int64_t m : {1, 2, 15, 16, 17, 24, 25, 33, 64}) {
    for (const std::int64_t k : {16, 33, 64, 100, 128}) {
      for (const std::int64_t n : {16, 32, 48, 64, 80, 128}) {
        for (const Start kind : {Start::kZeros, Start::kOneRow, Start::kNamedRows}) {
          ASSERT_NO_FATAL_FAILURE(ExpectPackedProduct(kernels(), m, k, n, kind));
        }
      }
    }
  }
}

// The f32 tables promise 2^-15; rounded to 8 bits, two factors are off by 2^-9 each.
TEST_P(DenseKernelsTest, OnlyTheTableThatIsNamedSoRoundsFactors) {
  const bool rounds = std::string_view(kernels().name) == "avx512_bf16";
  EXPECT_EQ(kernels().packed_error, rounds ? 0x1p-8F + 0x1p-15F : 0x1p-15F);
  if (rounds) {
    EXPECT_NE(&BestDenseKernels(), &kernels()) << "nobody has asked for it";
  }
}

TEST(DenseKernelsChoiceTest, FactorsAreRoundedWhereThatIsAskedForAndNoTableIsFasterWithout) {
  const auto all = AllDenseKernels();
  const auto has = [&](std::string_view name) {
    return std::any_of(all.begin(), all.end(),
                       [&](const DenseKernels* table) { return table->name == name; });
  };
  const bool rounds =
      std::getenv("ATEN_CPU_CAPABILITY") == nullptr && has("avx512_bf16") && !has("avx512_amx");
  EXPECT_EQ(BestDenseKernels(Precision::kBf16).name == std::string_view("avx512_bf16"), rounds);
  if (!rounds) {
    EXPECT_EQ(&BestDenseKernels(Precision::kBf16), &BestDenseKernels());
  }
}

// Shapes that a table's fastest way cannot do: it has to notice.
TEST_P(DenseKernelsTest, PackedProductsOfOddShapesMatchLoops) {
  using Shape = std::array<std::int64_t, 3>;
  for (const auto& [m, k, n] :
       {Shape{0, 64, 64}, Shape{3, 64, 24}, Shape{5, 1024, 16}, Shape{5, 1025, 16}}) {
    ASSERT_NO_FATAL_FAILURE(ExpectPackedProduct(kernels(), m, k, n, Start::kOneRow));
  }
}

TEST_P(DenseKernelsTest, NanAndInfinityAreNeverHiddenByPackedProducts) {
  constexpr std::int64_t kDepth = 64, kWidth = 16, kRows = 3;
  const std::vector<float> w(kDepth * kWidth, 0.5F), start(kWidth, 0.0F);
  PackedWeights packed(kernels(), kDepth, kWidth);
  packed.Pack(w.data());
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(kRows * kDepth, 1.0F), y(kRows * kWidth);
    x[kDepth + 7] = odd;
    packed.Multiply(start.data(), nullptr, x.data(), kDepth, kRows, y.data());
    EXPECT_FALSE(std::isfinite(y[kWidth]));
    EXPECT_EQ(y[0], 32.0F);
    EXPECT_EQ(y[2 * kWidth], 32.0F);
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

TEST_P(DenseKernelsTest, TanhIsAccurateFromTinyToHuge) {
  std::vector<float> x;
  for (int i = 0; i < 112; ++i) {
    x.push_back(static_cast<float>((i % 2 == 0 ? 1 : -1) * std::pow(10.0, i / 2 * 0.2 - 6)));
  }
  for (int i = 0; i < 16; ++i) x.push_back(i == 0 ? std::nanf("") : 0.0F);
  std::vector<float> y(x.size());
  kernels().tanh(x.data(), 1, static_cast<std::int64_t>(x.size()), y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(y[i]));
    } else {
      EXPECT_NEAR(y[i], std::tanh(static_cast<double>(x[i])), 3e-7) << x[i];
    }
  }
}

TEST_P(DenseKernelsTest, LayerNormAndItsBackwardMatchLoops) {
  constexpr std::size_t kRows = 5, kWidth = 48;
  constexpr float kEpsilon = 1e-5F;
  auto x = Noise(kRows * kWidth, 1);
  for (float& value : x) value = 3.0F * value + 7.0F;  // a mean that has to be taken away
  std::fill_n(x.begin(), kWidth, 2.0F);                // a row without variance
  const auto scale = Noise(kWidth, 2), bias = Noise(kWidth, 3), grad = Noise(kRows * kWidth, 4);
  std::vector<float> y(x.size()), grad_x = grad, grad_scale(kWidth, 1.0F), grad_bias(kWidth, 2.0F);
  kernels().layer_norm(x.data(), kRows, kWidth, scale.data(), bias.data(), kEpsilon, y.data());
  kernels().layer_norm_backward(grad_x.data(), x.data(), kRows, kWidth, scale.data(), kEpsilon,
                                grad_x.data(), grad_scale.data(), grad_bias.data());
  std::vector<double> of_scale(kWidth, 1.0), of_bias(kWidth, 2.0);
  for (std::size_t row = 0; row < kRows; ++row) {
    const float* in = x.data() + row * kWidth;
    const float* g = grad.data() + row * kWidth;
    double mean = 0, variance = 0, mean_g = 0, along = 0;
    for (std::size_t i = 0; i < kWidth; ++i) mean += static_cast<double>(in[i]) / kWidth;
    for (std::size_t i = 0; i < kWidth; ++i) variance += std::pow(in[i] - mean, 2) / kWidth;
    const double inverse = 1 / std::sqrt(variance + static_cast<double>(kEpsilon));
    const auto normed = [&](std::size_t i) { return (in[i] - mean) * inverse; };
    const auto scaled = [&](std::size_t i) { return static_cast<double>(g[i]) * scale[i]; };
    for (std::size_t i = 0; i < kWidth; ++i) {
      mean_g += scaled(i) / kWidth;
      along += scaled(i) * normed(i) / kWidth;
    }
    for (std::size_t i = 0; i < kWidth; ++i) {
      EXPECT_NEAR(y[row * kWidth + i], normed(i) * scale[i] + bias[i], 1e-5);
      EXPECT_NEAR(grad_x[row * kWidth + i], inverse * (scaled(i) - mean_g - normed(i) * along),
                  1e-5 * std::max(1.0, inverse));
      of_scale[i] += g[i] * normed(i);
      of_bias[i] += static_cast<double>(g[i]);
    }
  }
  for (std::size_t i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(grad_scale[i], of_scale[i], 1e-5);
    EXPECT_NEAR(grad_bias[i], of_bias[i], 1e-5);
  }
}

TEST_P(DenseKernelsTest, TransposedIsEveryNumberInItsPlace) {
  for (const std::int64_t m : {1, 7, 8, 9, 24, 65}) {
    for (const std::int64_t n : {1, 4, 8, 15, 16, 64}) {
      const auto x = Noise(static_cast<std::size_t>(m * n), 5);
      std::vector<float> y(x.size() + 1, 42.0F);
      kernels().transpose(x.data(), m, n, y.data());
      for (std::int64_t i = 0; i < m * n; ++i) {
        ASSERT_EQ(y[static_cast<std::size_t>(i % n * m + i / n)], x[static_cast<std::size_t>(i)])
            << m << " " << n;
      }
      EXPECT_EQ(y.back(), 42.0F);
    }
  }
}

// Of every sign and with bits of their own, which arithmetic on the bits of a float could take for
// an exponent.
TEST_P(DenseKernelsTest, NanIsNeverHidden) {
  for (const std::uint32_t bits :
       {0x7fc00000U, 0xffc00000U, 0x7f800001U, 0x7fc00001U, 0xffc000ffU, 0x7fffffffU}) {
    std::vector<float> x(kColumns, 0.5F), y(kColumns), slope(kColumns);
    x[7] = std::bit_cast<float>(bits);
    kernels().silu(x.data(), 1, kColumns, y.data(), slope.data());
    EXPECT_TRUE(std::isnan(y[7])) << bits;
    EXPECT_TRUE(std::isnan(slope[7])) << bits;
    EXPECT_FALSE(std::isnan(y[8]) || std::isnan(slope[8])) << bits;
    kernels().tanh(x.data(), 1, kColumns, y.data());
    EXPECT_TRUE(std::isnan(y[7])) << bits;
    EXPECT_FALSE(std::isnan(y[8])) << bits;
  }
}

// Rows of n logits, every third of them masked, the largest about `scale`.
std::vector<float> MaskedLogits(std::int64_t rows, std::int64_t n, float scale) {
  std::vector<float> logits = Noise(static_cast<std::size_t>(rows * n), 8);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = i % 3 == 1 && n > 1 ? kMaskedLogit : logits[i] * scale;
  }
  return logits;
}

TEST_P(DenseKernelsTest, ProbabilitiesNormaliserAndEntropyMatchLoopsForEveryCount) {
  constexpr std::int64_t kRows = 3;
  for (const float scale : {1e-3F, 1.0F, 30.0F, 1e4F}) {
    for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 40, 64, 100}) {
      const std::vector<float> logits = MaskedLogits(kRows, n, scale);
      std::vector<float> p(logits.size() + 1, 42.0F), normaliser(kRows), entropy(kRows);
      kernels().softmax(logits.data(), kRows, n, p.data(), normaliser.data(), entropy.data());
      for (std::int64_t row = 0; row < kRows; ++row) {
        const float* own = logits.data() + row * n;
        const double highest = *std::max_element(own, own + n);
        double sum = 0, expected = 0;
        for (std::int64_t a = 0; a < n; ++a) sum += std::exp(own[a] - highest);
        for (std::int64_t a = 0; a < n; ++a) {
          const double below = own[a] - highest, chance = std::exp(below) / sum;
          const float got = p[static_cast<std::size_t>(row * n + a)];
          if (chance > 0) expected -= chance * (below - std::log(sum));
          // The difference of two logits is rounded to a float, too.
          ASSERT_NEAR(got, chance, (2e-6 + 3e-7 * std::abs(below)) * chance + 1e-34)
              << n << " " << below;
          ASSERT_TRUE(own[a] != kMaskedLogit || got == 0.0F) << got;
        }
        const auto at = static_cast<std::size_t>(row);
        EXPECT_NEAR(normaliser[at], highest + std::log(sum), 3e-6 + 1e-7 * std::abs(highest));
        EXPECT_NEAR(entropy[at], expected, 3e-6) << n << " " << scale;
      }
      EXPECT_EQ(p.back(), 42.0F) << "written past the last row";
    }
  }
}

TEST_P(DenseKernelsTest, ALogitThatIsNotFiniteShowsInEveryFigureOfItsRowAndInNoOther) {
  constexpr std::int64_t kActions = 21, kRows = 3;
  for (const float odd :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {0U, 5U, 20U}) {
      std::vector<float> logits(kRows * kActions, 0.5F), p(logits.size(), 42.0F);
      std::vector<float> normaliser(kRows), entropy(kRows);
      for (std::size_t row = 0; row < kRows; ++row) logits[row * kActions + 7] = kMaskedLogit;
      logits[kActions + place] = odd;
      kernels().softmax(logits.data(), kRows, kActions, p.data(), normaliser.data(),
                        entropy.data());
      for (std::size_t i = 0; i < p.size(); ++i) {
        const double chance = i % kActions == 7 ? 0.0 : 1.0 / (kActions - 1);
        if (i / kActions == 1) {
          EXPECT_TRUE(std::isnan(p[i])) << odd << " " << place << " " << i;
        } else {
          EXPECT_NEAR(p[i], chance, 1e-7) << odd << " " << place << " " << i;
        }
      }
      EXPECT_TRUE(std::isnan(normaliser[1]) && std::isnan(entropy[1])) << odd << " " << place;
      EXPECT_TRUE(std::isfinite(normaliser[0]) && std::isfinite(entropy[2]));
    }
  }
}

TEST_P(DenseKernelsTest, ALogitOfMinusInfinityHasNoChanceAndEntropyNeedNotBeAskedFor) {
  const float none = -std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {1.0F, none, 1.0F};
  std::vector<float> p(3), normaliser(1), entropy(1);
  kernels().softmax(logits.data(), 1, 3, p.data(), normaliser.data(), entropy.data());
  EXPECT_EQ(p, (std::vector<float>{0.5F, 0.0F, 0.5F}));
  EXPECT_NEAR(normaliser[0], 1 + std::log(2.0), 1e-6);
  EXPECT_NEAR(entropy[0], std::log(2.0), 1e-6);
  std::vector<float> again(3), same(1);
  kernels().softmax(logits.data(), 1, 3, again.data(), same.data(), nullptr);
  EXPECT_EQ(again, p);
  EXPECT_EQ(same, normaliser);
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

INSTANTIATE_TEST_SUITE_P(Tables, DenseKernelsTest, ::testing::ValuesIn(AllDenseKernels()),
                         [](const auto& info) {
                           return std::to_string(info.index) + "_" + std::string(info.param->name);
                         });

}  // namespace
}  // namespace tetrion
