// Products of matrices: a part of dense_kernels_impl.h, whose first lines hold here, too.

#pragma once

#include <cstdint>

#include "lib/nn/dense_vectors_impl.h"

namespace tetrion {
namespace {

// Vector v of a row of kVectors, of which the last is `last`: Whole or Part.
template <int kVectors, typename Last>
inline AlignedVec LoadAt(const float* row, int v, const Last& last) {
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
template <int kRows, int kVectors, typename Last>
inline void ProductBlock(const Product& p, std::int64_t first, std::int64_t column,
                         const Last& last) {
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
template <int kRows, int kVectors, typename Last>
inline void LastRows(const Product& p, std::int64_t first, std::int64_t rows, std::int64_t column,
                     const Last& last) {
  if constexpr (kRows > 0) {
    if (rows - first == kRows) {
      ProductBlock<kRows, kVectors>(p, first, column, last);
    } else {
      LastRows<kRows - 1, kVectors>(p, first, rows, column, last);
    }
  }
}

// All rows of a panel of kVectors vectors. The accumulators fill the registers.
template <int kVectors, typename Last>
void ProductPanel(const Product& p, std::int64_t rows, std::int64_t column, const Last& last) {
  constexpr int kRows = kAccumulators / kVectors;
  std::int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    ProductBlock<kRows, kVectors>(p, row, column, last);
  }
  LastRows<kRows - 1, kVectors>(p, row, rows, column, last);
}

// The last columns from `column` on, `vectors` vectors of them.
template <typename Last>
void LastPanel(const Product& p, std::int64_t rows, std::int64_t column, std::int64_t vectors,
               const Last& last) {
  if (vectors == 1) ProductPanel<1>(p, rows, column, last);
  if (vectors == 2) ProductPanel<2>(p, rows, column, last);
  if constexpr (kVectors > 2) {
    if (vectors == 3) ProductPanel<3>(p, rows, column, last);
    if (vectors == 4) ProductPanel<4>(p, rows, column, last);
  }
}

void WriteProduct(const Product& p, std::int64_t rows, std::int64_t n) {
  std::int64_t column = 0;
  for (; column + kPanel <= n; column += kPanel) ProductPanel<kVectors>(p, rows, column, Whole());
  if (column == n) return;
  const std::int64_t left = n - column, vectors = (left + kLanes - 1) / kLanes;
  if (left == vectors * kLanes) {
    LastPanel(p, rows, column, vectors, Whole());
  } else {
    LastPanel(p, rows, column, vectors, Part(left - (vectors - 1) * kLanes));
  }
}

void Multiply(const float* bias, const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k,
              const float* w, std::int64_t ldw, std::int64_t n, float* y, std::int64_t ldy) {
  const float* start = bias == nullptr ? y : bias;
  WriteProduct({x, ldx, 1, k, w, ldw, y, ldy, start, bias == nullptr ? ldy : 0}, m, n);
}

void MultiplyFrom(const float* start, const std::int32_t* of, const float* x, std::int64_t ldx,
                  std::int64_t m, std::int64_t k, const float* w, std::int64_t n, float* y) {
  if (start == nullptr) {
    for (std::int64_t i = 0; i < m * n; ++i) y[i] = 0.0F;
    return Multiply(nullptr, x, ldx, m, k, w, n, n, y, n);
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

}  // namespace
}  // namespace tetrion
