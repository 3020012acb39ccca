// The kernels of dense_kernels.h for one vector width. Included by exactly the files that define
// TETRION_LANES, each compiled for its instruction set; everything here is file-local and calls
// nothing outside, so that no function built for AVX-512 can be linked into another file.

#include "lib/nn/dense_kernels.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLanes = TETRION_LANES;      // floats of a vector
constexpr int kVectors = TETRION_VECTORS;           // vectors of a column panel
constexpr std::int64_t kPanel = kLanes * kVectors;  // columns kept in registers

typedef float Vec __attribute__((vector_size(TETRION_LANES * 4), aligned(4), may_alias));
typedef std::int32_t IntVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef float AlignedVec __attribute__((vector_size(TETRION_LANES * 4)));

inline AlignedVec Load(const float* p) {
  return *reinterpret_cast<const Vec*>(p);
}
inline void Store(float* p, AlignedVec v) {
  *reinterpret_cast<Vec*>(p) = v;
}
inline AlignedVec Splat(float value) {
  return AlignedVec{} + value;
}

// e^x by 2^n * 2^f with a degree-6 polynomial on |f| <= 1/2 (Taylor of 2^f in f*ln 2); relative
// error below 2e-7 for |x| <= 80, beyond which x is clamped.
inline AlignedVec Exp(AlignedVec x) {
  const AlignedVec limit = Splat(80.0F);
  x = x > limit ? limit : x;
  x = x < -limit ? -limit : x;
  const AlignedVec shifter = Splat(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const AlignedVec n = (x * 1.44269504F + shifter) - shifter;
  AlignedVec f = x - n * 0.693359375F;  // ln 2 in two parts: the first product is exact
  f = f + n * 2.12194440e-4F;
  AlignedVec p = Splat(1.0F / 720.0F);
  p = p * f + 1.0F / 120.0F;
  p = p * f + 1.0F / 24.0F;
  p = p * f + 1.0F / 6.0F;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  return p * reinterpret_cast<AlignedVec>(exponent);
}

// y rows [0, kRows) += x rows * one panel of w, accumulated in registers.
template <int kRows>
inline void MultiplyBlock(const float* x, std::int64_t ldx, std::int64_t k, const float* w,
                          std::int64_t n, float* y) {
  AlignedVec acc[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = Load(y + r * n + v * kLanes);
  }
  for (std::int64_t i = 0; i < k; ++i) {
    AlignedVec row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = Load(w + i * n + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const AlignedVec a = Splat(x[r * ldx + i]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] += a * row[v];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Store(y + r * n + v * kLanes, acc[r][v]);
  }
}

void MultiplyAdd(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* w,
                 std::int64_t n, float* y) {
  constexpr int kRows = 5;
  for (std::int64_t column = 0; column < n; column += kPanel) {
    std::int64_t row = 0;
    for (; row + kRows <= m; row += kRows) {
      MultiplyBlock<kRows>(x + row * ldx, ldx, k, w + column, n, y + row * n + column);
    }
    for (; row < m; ++row) {
      MultiplyBlock<1>(x + row * ldx, ldx, k, w + column, n, y + row * n + column);
    }
  }
}

// w rows [0, kRows) of one panel += sum over m of x[., row] * y.
template <int kRows>
inline void OuterBlock(const float* x, std::int64_t ldx, std::int64_t m, const float* y,
                       std::int64_t n, float* w) {
  AlignedVec acc[kRows][kVectors] = {};
  for (std::int64_t i = 0; i < m; ++i) {
    AlignedVec row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = Load(y + i * n + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const AlignedVec a = Splat(x[i * ldx + r]);
      for (int v = 0; v < kVectors; ++v) acc[r][v] += a * row[v];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* at = w + r * n + v * kLanes;
      Store(at, Load(at) + acc[r][v]);
    }
  }
}

void OuterAdd(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
              std::int64_t n, float* w) {
  constexpr int kRows = 4;
  for (std::int64_t column = 0; column < n; column += kPanel) {
    std::int64_t row = 0;
    for (; row + kRows <= k; row += kRows) {
      OuterBlock<kRows>(x + row, ldx, m, y + column, n, w + row * n + column);
    }
    for (; row < k; ++row) OuterBlock<1>(x + row, ldx, m, y + column, n, w + row * n + column);
  }
}

void Silu(const float* x, std::int64_t m, std::int64_t n, float* y, float* slope) {
  const AlignedVec one = Splat(1.0F);
  for (std::int64_t i = 0; i < m * n; i += kLanes) {
    const AlignedVec v = Load(x + i);
    const AlignedVec sigmoid = one / (one + Exp(-v));
    const AlignedVec out = v * sigmoid;
    Store(y + i, out);
    if (slope != nullptr) Store(slope + i, sigmoid + out * (one - sigmoid));
  }
}

void Dot(const float* y, std::int64_t m, std::int64_t n, const float* w, float bias, float* out) {
  for (std::int64_t row = 0; row < m; ++row) {
    AlignedVec acc = {};
    for (std::int64_t i = 0; i < n; i += kLanes) acc += Load(y + row * n + i) * Load(w + i);
    float sum = 0.0F;
    for (std::int64_t i = 0; i < kLanes; ++i) sum += acc[i];
    out[row] = sum + bias;
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

void ColumnSum(const float* x, std::int64_t m, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    AlignedVec acc = {};
    for (std::int64_t row = 0; row < m; ++row) acc += Load(x + row * n + i);
    Store(sum + i, Load(sum + i) + acc);
  }
}

constexpr DenseKernels kTable = {TETRION_KERNELS_NAME, MultiplyAdd, OuterAdd, Silu, Dot,
                                 DotBackward,          ColumnSum};

}  // namespace
}  // namespace tetrion
