// The kernels of dense_kernels.h for one vector width. Included by exactly the files that define
// TETRION_LANES, each compiled for its instruction set; everything here is file-local and calls
// no function outside but libm's logf, so that none built for AVX-512 can be linked into another
// file.

#include <immintrin.h>

#include "lib/nn/dense_kernels.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLanes = TETRION_LANES;       // floats of a vector
constexpr int kVectors = TETRION_VECTORS;            // vectors of a column panel
constexpr std::int64_t kPanel = kLanes * kVectors;   // columns kept in registers
constexpr int kAccumulators = TETRION_ACCUMULATORS;  // vectors of a block of results

typedef float Vec __attribute__((vector_size(TETRION_LANES * 4), aligned(4), may_alias));
typedef std::int32_t IntVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef float AlignedVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

inline AlignedVec Load(const float* p) {
  return *reinterpret_cast<const Vec*>(p);
}
inline void Store(float* p, AlignedVec v) {
  *reinterpret_cast<Vec*>(p) = v;
}
inline AlignedVec Splat(float value) {
  return value - AlignedVec{};  // what adding 0 would not be: a plain copy
}

// 2^n and what is left of x / ln 2, so that e^x = 2^n 2^f with |f| <= 1/2. NaN stays NaN in both.
struct Split {
  AlignedVec n, f;
};

inline Split SplitPower(AlignedVec x) {
#ifdef __AVX512F__
  auto t = reinterpret_cast<__m512>(x * 1.44269504F);
  // What is subtracted below gives a whole number; contracted with the product it would not.
  asm("" : "+v"(t));
  const __m512 f = _mm512_maskz_reduce_ps(0xFFFF, t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return {reinterpret_cast<AlignedVec>(_mm512_maskz_sub_ps(0xFFFF, t, f)),
          reinterpret_cast<AlignedVec>(f)};
#else
  const AlignedVec most = Splat(80.0F);
  x = x > most ? most : x;
  x = x < -most ? -most : x;
  const AlignedVec shifter = Splat(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const AlignedVec n = (x * 1.44269504F + shifter) - shifter;
  return {n, x * 1.44269504F - n};
#endif
}

// p * 2^n for whole n.
inline AlignedVec Scaled(AlignedVec p, AlignedVec n) {
#ifdef __AVX512F__
  return reinterpret_cast<AlignedVec>(
      _mm512_maskz_scalef_ps(0xFFFF, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  return p * reinterpret_cast<AlignedVec>(exponent);
#endif
}

// e^x, with the polynomial of degree 5 for 2^f whose largest relative error is least (by reweighted
// least squares, 2^0 kept exact): off by 5e-7 + 8e-8 |x| of it for |x| <= 80. Beyond that AVX-512
// goes on to 0 and infinity; the baseline stays at e^-80 and e^80.
inline AlignedVec Exp(AlignedVec x) {
  const auto [n, f] = SplitPower(x);
  AlignedVec p = Splat(0.00132645917F);
  p = p * f + 0.00967161899F;
  p = p * f + 0.0555073501F;
  p = p * f + 0.240222404F;
  p = p * f + 0.69314698F;
  p = p * f + 1.0F;
  return Scaled(p, n);
}

// One number of a vector's floats, by op(a, b) of vectors of any size, halves first.
template <typename Op>
inline float Folded(AlignedVec v, const Op& op) {
#ifdef __AVX512F__
  const Eight eight = op(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  const Eight eight = v;
#endif
  const Four four = op(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),
                       __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  const Four two = op(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  return op(two, __builtin_shufflevector(two, two, 1, 1, 1, 1))[0];
}

template <typename V>
inline V Greater(V a, V b) {
  return a > b ? a : b;
}
inline float Sum(AlignedVec v) {
  return Folded(v, [](auto a, auto b) { return a + b; });
}

// The first `count` floats of a vector, 1..kLanes of them; the others are neither read nor written.
struct Part {
  explicit Part(std::int64_t count) : count(count) {
#ifdef __AVX512F__
    mask = static_cast<__mmask16>((1U << count) - 1U);
#else
    for (std::int64_t i = 0; i < kLanes; ++i) mask[i] = i < count ? -1 : 0;
#endif
  }
  AlignedVec Load(const float* p) const {
#ifdef __AVX512F__
    return reinterpret_cast<AlignedVec>(_mm512_maskz_loadu_ps(mask, p));
#else
    return reinterpret_cast<AlignedVec>(_mm256_maskload_ps(p, reinterpret_cast<__m256i>(mask)));
#endif
  }
  // And `rest` in place of the others.
  AlignedVec LoadOr(const float* p, AlignedVec rest) const {
#ifdef __AVX512F__
    return reinterpret_cast<AlignedVec>(
        _mm512_mask_loadu_ps(reinterpret_cast<__m512>(rest), mask, p));
#else
    return mask != 0 ? Load(p) : rest;
#endif
  }
  void Store(float* p, AlignedVec v) const {
#ifdef __AVX512F__
    _mm512_mask_storeu_ps(p, mask, reinterpret_cast<__m512>(v));
#else
    _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(mask), reinterpret_cast<__m256>(v));
#endif
  }

  std::int64_t count;
#ifdef __AVX512F__
  __mmask16 mask;
#else
  IntVec mask;
#endif
};

// Vector v of a row of kVectors, of which the last is there in part.
template <int kVectors>
inline AlignedVec LoadAt(const float* row, int v, const Part& last) {
  return v + 1 < kVectors ? Load(row + v * kLanes) : last.Load(row + v * kLanes);
}

// A product's operands: out [rows, n] = start + a * b, where a's element (r, i) is
// a[r * row + i * step], and row r of start is start[Of(r) * lds].
struct Product {
  const float* a;
  std::int64_t row, step, depth;
  const float* b;
  std::int64_t ldb;
  float* out;
  std::int64_t ldo;
  const float* start;
  std::int64_t lds;
  const std::int32_t* of = nullptr;

  std::int64_t Of(std::int64_t r) const { return of == nullptr ? r : of[r]; }
};

// kRows rows of kVectors vectors, accumulated in registers: where a loop over them stayed a loop,
// they would be in memory.
template <int kRows, int kVectors>
inline void ProductBlock(const Product& p, std::int64_t first, std::int64_t column,
                         const Part& last) {
  AlignedVec acc[kRows][kVectors];
  const std::int64_t row = p.row, step = p.step, ldb = p.ldb, ldo = p.ldo;
  float* out = p.out + first * ldo + column;
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
    const float* start = p.start + p.Of(first + r) * p.lds + column;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[r][v] = LoadAt<kVectors>(start, v, last);
  }
  const float* a = p.a + first * row;
  const float* b = p.b + column;
  for (std::int64_t i = p.depth; i > 0; --i, a += step, b += ldb) {
    AlignedVec right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = LoadAt<kVectors>(b, v, last);
#pragma GCC unroll 32
    for (int r = 0; r < kRows; ++r) {
      const AlignedVec left = Splat(a[r * row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kVectors; ++v) Store(out + r * ldo + v * kLanes, acc[r][v]);
    last.Store(out + r * ldo + (kVectors - 1) * kLanes, acc[r][kVectors - 1]);
  }
}

// Rows [first, rows) of which there are at most kRows.
template <int kRows, int kVectors>
inline void LastRows(const Product& p, std::int64_t first, std::int64_t rows, std::int64_t column,
                     const Part& last) {
  if constexpr (kRows > 0) {
    if (rows - first == kRows) {
      ProductBlock<kRows, kVectors>(p, first, column, last);
    } else {
      LastRows<kRows - 1, kVectors>(p, first, rows, column, last);
    }
  }
}

// All rows of a panel of kVectors vectors. The accumulators fill the registers.
template <int kVectors>
void ProductPanel(const Product& p, std::int64_t rows, std::int64_t column, const Part& last) {
  constexpr int kRows = kAccumulators / kVectors;
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    ProductBlock<kRows, kVectors>(p, row, column, last);
  }
  LastRows<kRows - 1, kVectors>(p, row, rows, column, last);
}

void WriteProduct(const Product& p, std::int64_t rows, std::int64_t n) {
  const Part whole(kLanes);
  std::int64_t column = 0;
  for (; column + kPanel <= n; column += kPanel) ProductPanel<kVectors>(p, rows, column, whole);
  if (column == n) return;
  const std::int64_t left = n - column, vectors = (left + kLanes - 1) / kLanes;
  const Part last(left - (vectors - 1) * kLanes);
  if (vectors == 1) ProductPanel<1>(p, rows, column, last);
  if (vectors == 2) ProductPanel<2>(p, rows, column, last);
  if constexpr (kVectors > 2) {
    if (vectors == 3) ProductPanel<3>(p, rows, column, last);
    if (vectors == 4) ProductPanel<4>(p, rows, column, last);
  }
}

void Multiply(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* w,
              std::int64_t ldw, std::int64_t n, float* y, std::int64_t ldy) {
  WriteProduct({x, ldx, 1, k, w, ldw, y, ldy, y, ldy}, m, n);
}

void MultiplyFrom(const float* start, const std::int32_t* of, const float* x, std::int64_t ldx,
                  std::int64_t m, std::int64_t k, const float* w, std::int64_t n, float* y) {
  if (start == nullptr) {
    for (std::int64_t i = 0; i < m * n; ++i) y[i] = 0.0F;
    return Multiply(x, ldx, m, k, w, n, n, y, n);
  }
  WriteProduct({x, ldx, 1, k, w, n, y, n, start, of == nullptr ? 0 : n, of}, m, n);
}

std::int64_t PackedFloats(std::int64_t, std::int64_t) {
  return 0;
}

void Pack(const float*, std::int64_t, std::int64_t, float*) {}

void Outer(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
           std::int64_t ldy, std::int64_t n, float* w, std::int64_t ldw) {
  WriteProduct({x, 1, ldx, m, y, ldy, w, ldw, w, ldw}, k, n);
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
                                 .dot = Dot,
                                 .dot_backward = DotBackward,
                                 .softmax = Softmax,
                                 .column_sum = ColumnSum,
                                 .sum_bits = SumSetBits,
                                 .add_bits = AddSetBits};

}  // namespace
}  // namespace tetrion
