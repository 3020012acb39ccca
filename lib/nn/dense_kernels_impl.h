// The kernels of dense_kernels.h for one vector width. Included by exactly the files that define
// TETRION_LANES, each compiled for its instruction set; everything here is file-local and calls
// no function outside but libm's logf and sqrtf, so that none built for AVX-512 can be linked into
// another file.

#pragma once

#include "lib/nn/dense_kernels.h"
#include "lib/nn/dense_products_impl.h"
#include "lib/nn/dense_vectors_impl.h"

namespace tetrion {
namespace {

void Silu(const float* x, std::int64_t m, std::int64_t n, float* y, float* slope) {
  const AlignedVec one = Splat(1.0F);
  for (std::int64_t i = 0; i < m * n; i += kLanes) {
    const AlignedVec v = Load(x + i);
    const AlignedVec sigmoid = one / (one + ExpOfMinus(v));  // out of NaN is NaN all the same
    const AlignedVec out = v * sigmoid;
    Store(y + i, out);
    if (slope != nullptr) Store(slope + i, sigmoid + out * (one - sigmoid));
  }
}

void Tanh(const float* x, std::int64_t m, std::int64_t n, float* y) {
  const AlignedVec one = Splat(1.0F), two = Splat(2.0F);
  for (std::int64_t i = 0; i < m * n; i += kLanes) {
    Store(y + i, one - two / (one + Exp(two * Load(x + i))));
  }
}

// Of a row, in every lane.
struct Moments {
  AlignedVec mean, inverse;  // 1 / sqrt(variance + epsilon)
};

inline Moments MomentsOf(const float* x, std::int64_t n, float epsilon) {
  AlignedVec sum = {}, squares = {};
  for (std::int64_t i = 0; i < n; i += kLanes) sum += Load(x + i);
  const auto count = static_cast<float>(n);
  const AlignedVec mean = Splat(Sum(sum) / count);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const AlignedVec off = Load(x + i) - mean;
    squares += off * off;
  }
  return {mean, Splat(1.0F / __builtin_sqrtf(Sum(squares) / count + epsilon))};
}

void LayerNorm(const float* x, std::int64_t m, std::int64_t n, const float* scale,
               const float* bias, float epsilon, float* y) {
  for (std::int64_t row = 0; row < m; ++row, x += n, y += n) {
    const auto [mean, inverse] = MomentsOf(x, n, epsilon);
    for (std::int64_t i = 0; i < n; i += kLanes) {
      Store(y + i, (Load(x + i) - mean) * inverse * Load(scale + i) + Load(bias + i));
    }
  }
}

// With x' = (x - mean) inverse and g' = grad scale: inverse (g' - mean g' - x' mean (g' x')).
void LayerNormBackward(const float* grad, const float* x, std::int64_t m, std::int64_t n,
                       const float* scale, float epsilon, float* grad_x, float* grad_scale,
                       float* grad_bias) {
  for (std::int64_t row = 0; row < m; ++row, grad += n, x += n, grad_x += n) {
    const auto [mean, inverse] = MomentsOf(x, n, epsilon);
    AlignedVec sum = {}, along = {};
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const AlignedVec g = Load(grad + i), normed = (Load(x + i) - mean) * inverse;
      Store(grad_bias + i, Load(grad_bias + i) + g);
      Store(grad_scale + i, Load(grad_scale + i) + g * normed);
      sum += g * Load(scale + i);
      along += g * Load(scale + i) * normed;
    }
    const AlignedVec share = Splat(1.0F / static_cast<float>(n));
    const AlignedVec mean_g = Splat(Sum(sum)) * share, mean_along = Splat(Sum(along)) * share;
    for (std::int64_t i = 0; i < n; i += kLanes) {
      const AlignedVec normed = (Load(x + i) - mean) * inverse;
      Store(grad_x + i,
            inverse * (Load(grad + i) * Load(scale + i) - mean_g - normed * mean_along));
    }
  }
}

// 8 x 8 numbers: pairs, fours and halves of two rows change places.
inline void TransposeEight(const float* x, std::int64_t ldx, float* y, std::int64_t ldy) {
  Eight row[8], pair[8], four[8];
#pragma GCC unroll 8
  for (int r = 0; r < 8; ++r) row[r] = *reinterpret_cast<const LooseEight*>(x + r * ldx);
#pragma GCC unroll 4
  for (int r = 0; r < 8; r += 2) {
    pair[r] = __builtin_shufflevector(row[r], row[r + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pair[r + 1] = __builtin_shufflevector(row[r], row[r + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const int r = i / 2 * 4 + i % 2;
    four[i / 2 * 4 + i % 2 * 2] =
        __builtin_shufflevector(pair[r], pair[r + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    four[i / 2 * 4 + i % 2 * 2 + 1] =
        __builtin_shufflevector(pair[r], pair[r + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    *reinterpret_cast<LooseEight*>(y + r * ldy) =
        __builtin_shufflevector(four[r], four[r + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<LooseEight*>(y + (r + 4) * ldy) =
        __builtin_shufflevector(four[r], four[r + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

void Transpose(const float* x, std::int64_t m, std::int64_t n, float* y) {
  const std::int64_t rows = m / 8 * 8, columns = n / 8 * 8;
  for (std::int64_t c = 0; c < columns; c += 8) {
    for (std::int64_t r = 0; r < rows; r += 8) TransposeEight(x + r * n + c, n, y + c * m + r, m);
  }
  for (std::int64_t r = 0; r < m; ++r) {
    for (std::int64_t c = r < rows ? columns : 0; c < n; ++c) y[c * m + r] = x[r * n + c];
  }
}

void Dot(const float* y, std::int64_t m, std::int64_t n, const float* w, float bias, float* out) {
  for (std::int64_t row = 0; row < m; ++row) {
    AlignedVec acc = {};
    for (std::int64_t i = 0; i < n; i += kLanes) acc += Load(y + row * n + i) * Load(w + i);
    out[row] = Sum(acc) + bias;
  }
}

void DotBackward(const float* g, std::int64_t m, std::int64_t n, const float* w, const float* slope,
                 float* grad) {
  for (std::int64_t row = 0; row < m; ++row) {
    const AlignedVec scale = Splat(g[row]);
    for (std::int64_t i = 0; i < n; i += kLanes) {
      Store(grad + row * n + i, scale * Load(w + i) * Load(slope + row * n + i));
    }
  }
}

// A vector of a row's logits below its highest one.
struct Below {
  AlignedVec e;         // e^below, 0 from e^-80 downwards
  AlignedVec weighted;  // below e^below
};

inline Below ExpBelow(AlignedVec below) {
  below = below < -80.0F ? Splat(-80.0F) : below;  // NaN stays NaN
  const AlignedVec e = below == -80.0F ? AlignedVec{} : Exp(below);
  return {e, below * e};
}

void Softmax(const float* logits, std::int64_t m, std::int64_t n, float* probability,
             float* log_normaliser, float* entropy) {
  const std::int64_t whole = (n - 1) / kLanes * kLanes;
  const Part last(n - whole);
  for (std::int64_t row = 0; row < m; ++row, logits += n, probability += n) {
    AlignedVec most = last.LoadOr(logits + whole, Splat(logits[0]));
    for (std::int64_t i = 0; i < whole; i += kLanes) most = Greater(Load(logits + i), most);
    const AlignedVec highest = Splat(Folded(most, [](auto a, auto b) { return Greater(a, b); }));
    AlignedVec sum = {}, weighted = {};
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      const Below at = ExpBelow(Load(logits + i) - highest);
      Store(probability + i, at.e);
      sum += at.e;
      weighted += at.weighted;
    }
    const Below at = ExpBelow(last.LoadOr(logits + whole, Splat(-__builtin_inff())) - highest);
    const float total = Sum(sum + at.e), log_total = __builtin_logf(total);
    log_normaliser[row] = highest[0] + log_total;
    if (entropy != nullptr) entropy[row] = log_total - Sum(weighted + at.weighted) / total;
    const AlignedVec scale = Splat(1.0F / total);
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      Store(probability + i, Load(probability + i) * scale);
    }
    last.Store(probability + whole, at.e * scale);
  }
}

void ColumnSum(const float* x, std::int64_t m, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    AlignedVec acc = {};
    for (std::int64_t row = 0; row < m; ++row) acc += Load(x + row * n + i);
    Store(sum + i, Load(sum + i) + acc);
  }
}

// kVectors vectors of a row of y plus those of `count` rows of w, whose offsets are given.
template <int kVectors>
inline void SumRows(const std::int64_t* offset, int count, const float* w, float* y) {
  AlignedVec acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) acc[v] = Load(y + v * kLanes);
  for (int i = 0; i < count; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[v] += Load(w + offset[i] + v * kLanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) Store(y + v * kLanes, acc[v]);
}

void SumSetBits(const std::uint64_t* bits, std::int64_t m, const float* w, std::int64_t n,
                float* y) {
  std::int64_t offset[64];
  for (std::int64_t row = 0; row < m; ++row, y += n) {
    int count = 0;
    for (std::uint64_t left = bits[row]; left != 0; left &= left - 1) {
      offset[count++] = __builtin_ctzll(left) * n;
    }
    std::int64_t i = 0;
    for (; i + kPanel <= n; i += kPanel) SumRows<kVectors>(offset, count, w + i, y + i);
    for (; i < n; i += kLanes) SumRows<1>(offset, count, w + i, y + i);
  }
}

void AddSetBits(const std::uint64_t* bits, std::int64_t m, const float* y, std::int64_t n,
                float* w) {
  for (std::int64_t row = 0; row < m; ++row, y += n) {
    for (std::uint64_t left = bits[row]; left != 0; left &= left - 1) {
      float* to = w + __builtin_ctzll(left) * n;
      for (std::int64_t i = 0; i < n; i += kLanes) Store(to + i, Load(to + i) + Load(y + i));
    }
  }
}

constexpr DenseKernels kTable = {.name = TETRION_KERNELS_NAME,
                                 .multiply = Multiply,
                                 .multiply_from = MultiplyFrom,
                                 .packed_error = 0x1p-15F,
                                 .packed_floats = PackedFloats,
                                 .pack = Pack,
                                 .outer = Outer,
                                 .silu = Silu,
                                 .tanh = Tanh,
                                 .layer_norm = LayerNorm,
                                 .layer_norm_backward = LayerNormBackward,
                                 .transpose = Transpose,
                                 .dot = Dot,
                                 .dot_backward = DotBackward,
                                 .softmax = Softmax,
                                 .column_sum = ColumnSum,
                                 .sum_bits = SumSetBits,
                                 .add_bits = AddSetBits};

}  // namespace
}  // namespace tetrion
