// Products of packed weights whose factors are rounded to bf16 (AVX-512 BF16), which the vector
// unit multiplies two for one of f32. Sums are of f32. Each factor is off by 2^-9 of itself at
// most, so a result is that of f32 arithmetic to within 2^-8 of the sum of the products' absolute
// values and what f32 sums round themselves (dense_kernels_test.cc).
//
// This file alone is compiled for these instructions and reached only through Bf16DenseKernels,
// which asks the processor first. What it shares with the AVX-512 table it takes from there.

#include <immintrin.h>

#include <bit>
#include <cstdint>

#include "lib/nn/dense_kernels.h"

namespace tetrion {

const DenseKernels& Avx512DenseKernels();  // dense_kernels_avx512.cc
const DenseKernels* Bf16DenseKernels();    // null where this processor has no such instructions

namespace {

constexpr std::int64_t kLanes = 16;    // results of a vector
constexpr int kVectors = 4;            // vectors of a column panel
constexpr int kRows = 6;               // of a block of results, which fill 24 registers
constexpr std::int64_t kRounded = 24;  // rows that are rounded at a time
constexpr std::int64_t kMostDepth = 1024;
// g++ 12 takes what the forms without a mask leave undefined for a mistake.
constexpr __mmask16 kAll = 0xFFFF;

// Shorter sums stay f32: rounding a row is a larger part of their work.
constexpr std::int64_t kLeastDepth = 64;

bool AreRounded(std::int64_t k, std::int64_t n) {
  return k >= kLeastDepth && k <= kMostDepth && n % kLanes == 0;
}

std::int64_t PackedFloats(std::int64_t k, std::int64_t n) {
  return AreRounded(k, n) ? (k + 1) / 2 * n : 0;  // two numbers in the place of one
}

// 16 floats, each rounded to the lower half of a number.
__m512i Rounded(__m512 x) {
  return _mm512_maskz_cvtepu16_epi32(kAll, std::bit_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

// Row i has rows 2 i and 2 i + 1 of w in turns, as pairs are multiplied; a row that is not there is
// zeros.
void Pack(const float* w, std::int64_t k, std::int64_t n, float* packed) {
  for (std::int64_t row = 0; row < k; row += 2, w += 2 * n, packed += n) {
    for (std::int64_t column = 0; column < n; column += kLanes) {
      const __m512 second = row + 1 < k ? _mm512_loadu_ps(w + n + column) : _mm512_setzero_ps();
      _mm512_storeu_si512(packed + column,
                          _mm512_or_si512(Rounded(_mm512_loadu_ps(w + column)),
                                          _mm512_maskz_slli_epi32(kAll, Rounded(second), 16)));
    }
  }
}

// Rows [m, k] of x, rounded, at `pairs`, rows of which are `stride` pairs; zeros behind.
void RoundRows(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k,
               std::int64_t stride, std::int32_t* pairs) {
  for (std::int64_t row = 0; row < m; ++row, x += ldx, pairs += stride) {
    for (std::int64_t i = 0; i < k; i += kLanes) {
      const std::int64_t left = k - i;
      const auto there = static_cast<__mmask16>(left >= kLanes ? 0xFFFF : (1U << left) - 1U);
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(pairs + i / 2),
          std::bit_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(there, x + i))));
    }
  }
}

// A product's operands: y [rows, n] = start + x w. Columns begin with the panel's first one.
struct Product {
  const float* start;  // its row of[r] is what row r starts from, or row 0 where `of` is null
  const std::int32_t* of;
  const std::int32_t* pairs;   // of x
  std::int64_t stride, depth;  // of a row of x, in pairs
  const float* packed;         // w
  std::int64_t n;
  float* y;
};

template <int kSomeRows, int kSomeVectors>
inline void Block(const Product& p, std::int64_t first) {
  __m512 sum[kSomeRows][kSomeVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kSomeRows; ++r) {
    const float* start = p.of == nullptr ? p.start : p.start + p.of[first + r] * p.n;
#pragma GCC unroll 4
    for (int v = 0; v < kSomeVectors; ++v) sum[r][v] = _mm512_loadu_ps(start + v * kLanes);
  }
  const std::int32_t* x = p.pairs + first * p.stride;
  const float* w = p.packed;
  const std::int64_t stride = p.stride;
  for (std::int64_t i = 0; i < p.depth; ++i, ++x, w += p.n) {
    __m512bh right[kSomeVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kSomeVectors; ++v) {
      right[v] = std::bit_cast<__m512bh>(_mm512_loadu_si512(w + v * kLanes));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kSomeRows; ++r) {
      const auto left = std::bit_cast<__m512bh>(_mm512_set1_epi32(x[r * stride]));
#pragma GCC unroll 4
      for (int v = 0; v < kSomeVectors; ++v) {
        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], left, right[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kSomeRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kSomeVectors; ++v) {
      _mm512_storeu_ps(p.y + (first + r) * p.n + v * kLanes, sum[r][v]);
    }
  }
}

// Rows [first, rows) of which there are at most kSomeRows.
template <int kSomeRows, int kSomeVectors>
inline void LastRows(const Product& p, std::int64_t first, std::int64_t rows) {
  if constexpr (kSomeRows > 0) {
    if (rows - first == kSomeRows) {
      Block<kSomeRows, kSomeVectors>(p, first);
    } else {
      LastRows<kSomeRows - 1, kSomeVectors>(p, first, rows);
    }
  }
}

template <int kSomeVectors>
void Panel(const Product& p, std::int64_t rows) {
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) Block<kRows, kSomeVectors>(p, row);
  LastRows<kRows - 1, kSomeVectors>(p, row, rows);
}

void MultiplyFrom(const float* start, const std::int32_t* of, const float* x, std::int64_t ldx,
                  std::int64_t m, std::int64_t k, const float* packed, std::int64_t n, float* y) {
  if (!AreRounded(k, n)) {
    return Avx512DenseKernels().multiply_from(start, of, x, ldx, m, k, packed, n, y);
  }
  constexpr std::int64_t kPanel = kVectors * kLanes;
  alignas(64) static constexpr float kZeros[kPanel] = {};
  alignas(64) std::int32_t pairs[kRounded * kMostDepth / 2];
  const std::int64_t stride = (k + kLanes - 1) / kLanes * (kLanes / 2);
  for (std::int64_t row = 0; row < m; row += kRounded) {
    const std::int64_t rows = m - row < kRounded ? m - row : kRounded;
    RoundRows(x + row * ldx, ldx, rows, k, stride, pairs);
    for (std::int64_t column = 0; column < n; column += kPanel) {
      const Product p = {.start = start == nullptr ? kZeros : start + column,
                         .of = of == nullptr ? nullptr : of + row,
                         .pairs = pairs,
                         .stride = stride,
                         .depth = (k + 1) / 2,
                         .packed = packed + column,
                         .n = n,
                         .y = y + row * n + column};
      const std::int64_t left = n - column;
      if (left >= kPanel) Panel<kVectors>(p, rows);
      if (left == 3 * kLanes) Panel<3>(p, rows);
      if (left == 2 * kLanes) Panel<2>(p, rows);
      if (left == kLanes) Panel<1>(p, rows);
    }
  }
}

DenseKernels MakeTable() {
  DenseKernels table = Avx512DenseKernels();
  table.name = "avx512_bf16";
  table.packed_error = 0x1p-8F + Avx512DenseKernels().packed_error;
  table.packed_floats = PackedFloats;
  table.pack = Pack;
  table.multiply_from = MultiplyFrom;
  return table;
}

}  // namespace

const DenseKernels* Bf16DenseKernels() {
  static const DenseKernels table = MakeTable();
  static const bool may = __builtin_cpu_supports("avx512bf16");
  return may ? &table : nullptr;
}

}  // namespace tetrion
