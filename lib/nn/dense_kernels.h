#pragma once

#include <cstdint>

namespace tetrion {

// Single-thread f32 kernels of the scorer and of DreamerV3, one table per instruction set. All
// matrices are row-major; column counts n of all but the products are multiples of 16. Pointers
// need float alignment only. Outputs must not overlap inputs unless said. A row's result does not
// depend on how many rows share the call.
struct DenseKernels {
  const char* name;
  // y [m, n] += x [m, k] * w [k, n]; rows of x are ldx floats apart, those of w ldw, of y ldy.
  void (*multiply)(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* w,
                   std::int64_t ldw, std::int64_t n, float* y, std::int64_t ldy);
  // y [m, n] = start + x [m, k] * w [k, n]. Row i starts from row `of[i]` of start [., n], every
  // row from its first one where `of` is null; rows of x are ldx floats apart.
  void (*multiply_from)(const float* start, const std::int32_t* of, const float* x,
                        std::int64_t ldx, std::int64_t m, std::int64_t k, const float* w,
                        std::int64_t n, float* y);
  // w [k, n] += x^T [k, m] * y [m, n]: the gradient of a weight.
  void (*outer)(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
                std::int64_t ldy, std::int64_t n, float* w, std::int64_t ldw);
  // y [m, n] = silu(x); slope [m, n] = silu'(x) unless null. y may be x.
  void (*silu)(const float* x, std::int64_t m, std::int64_t n, float* y, float* slope);
  // out [m] = y [m, n] . w [n] + bias.
  void (*dot)(const float* y, std::int64_t m, std::int64_t n, const float* w, float bias,
              float* out);
  // grad [m, n] = g [m] (outer) w [n] * slope [m, n]: back through a dot and the SiLU before it.
  void (*dot_backward)(const float* g, std::int64_t m, std::int64_t n, const float* w,
                       const float* slope, float* grad);
  // sum [n] += column sums of x [m, n].
  void (*column_sum)(const float* x, std::int64_t m, std::int64_t n, float* sum);
  // y [m, n] += the rows of w [64, n] whose bit is set in bits [m]: a product with zeros and ones.
  void (*sum_bits)(const std::uint64_t* bits, std::int64_t m, const float* w, std::int64_t n,
                   float* y);
  // w [64, n]: row i += the rows of y [m, n] with bit i set: the gradient of such a weight.
  void (*add_bits)(const std::uint64_t* bits, std::int64_t m, const float* y, std::int64_t n,
                   float* w);

  // The first and the last product of w and y whose rows lie one behind the other.
  void multiply_add(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k,
                    const float* w, std::int64_t n, float* y) const {
    multiply(x, ldx, m, k, w, n, n, y, n);
  }
  void outer_add(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
                 std::int64_t n, float* w) const {
    outer(x, ldx, m, k, y, n, n, w, n);
  }
};

// The fastest table this processor runs: AVX-512 or the build's baseline. With the tensor library's
// variable ATEN_CPU_CAPABILITY=avx2 or default it is the baseline, so that a test can run as on an
// older processor.
const DenseKernels& BestDenseKernels();
// The build's baseline, for tests that compare the two.
const DenseKernels& BaselineDenseKernels();

}  // namespace tetrion
