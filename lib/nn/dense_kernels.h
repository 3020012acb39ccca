#pragma once

#include <cstdint>
#include <vector>

#include "lib/nn/precision.h"

namespace tetrion {

// Single-thread kernels of the networks, of DreamerV3 and of V-trace, one table per instruction
// set. f32 in and out, and all arithmetic too, save packed products, which may round factors
// (packed_error). All matrices are row-major; column counts n of all but the products and softmax
// are multiples of 16 unless said. Pointers need float alignment only. Outputs must not overlap
// inputs unless said. A row's result does not depend on how many rows share the call.
struct DenseKernels {
  const char* name;
  // y [m, n] = bias [n] + x [m, k] * w [k, n], or y += x * w where bias is null; rows of x are ldx
  // floats apart, those of w ldw, of y ldy.
  void (*multiply)(const float* bias, const float* x, std::int64_t ldx, std::int64_t m,
                   std::int64_t k, const float* w, std::int64_t ldw, std::int64_t n, float* y,
                   std::int64_t ldy);
  // y [m, n] = start + x [m, k] * w [k, n], where `packed` is what `pack` wrote, or w itself where
  // packed_floats is 0. Row i starts from row `of[i]` of start [., n], every row from its first one
  // where `of` is null, and from zeros where start is null, as `of` must be then; rows of x are ldx
  // floats apart.
  void (*multiply_from)(const float* start, const std::int32_t* of, const float* x,
                        std::int64_t ldx, std::int64_t m, std::int64_t k, const float* packed,
                        std::int64_t n, float* y);
  // A packed product is off by at most this share of the sum of its terms' absolute values.
  float packed_error;
  // Floats that w [k, n] takes when it is packed; 0 where it is used as it is.
  std::int64_t (*packed_floats)(std::int64_t k, std::int64_t n);
  void (*pack)(const float* w, std::int64_t k, std::int64_t n, float* packed);
  // w [k, n] += x^T [k, m] * y [m, n]: the gradient of a weight.
  void (*outer)(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
                std::int64_t ldy, std::int64_t n, float* w, std::int64_t ldw);
  // y [m, n] = silu(x); slope [m, n] = silu'(x) unless null. y may be x.
  void (*silu)(const float* x, std::int64_t m, std::int64_t n, float* y, float* slope);
  // y [m, n] = tanh(x), off by 3e-7 at most. y may be x.
  void (*tanh)(const float* x, std::int64_t m, std::int64_t n, float* y);
  // y [m, n] = (x - mean) / sqrt(variance + epsilon) * scale [n] + bias [n], mean and variance of a
  // row (Ba et al., Layer Normalization, 2016). y may be x.
  void (*layer_norm)(const float* x, std::int64_t m, std::int64_t n, const float* scale,
                     const float* bias, float epsilon, float* y);
  // grad_x [m, n] for d loss / d y `grad`; adds to grad_scale [n] and grad_bias [n]. grad_x may be
  // grad.
  void (*layer_norm_backward)(const float* grad, const float* x, std::int64_t m, std::int64_t n,
                              const float* scale, float epsilon, float* grad_x, float* grad_scale,
                              float* grad_bias);
  // y [n, m] = x^T, x [m, n], any m and n.
  void (*transpose)(const float* x, std::int64_t m, std::int64_t n, float* y);
  // out [m] = y [m, n] . w [n] + bias.
  void (*dot)(const float* y, std::int64_t m, std::int64_t n, const float* w, float bias,
              float* out);
  // grad [m, n] = g [m] (outer) w [n] * slope [m, n]: back through a dot and the SiLU before it.
  void (*dot_backward)(const float* g, std::int64_t m, std::int64_t n, const float* w,
                       const float* slope, float* grad);
  // Of each row of logits [m, n], any n >= 1: its probabilities [m, n], 0 from e^-80 of the
  // greatest downwards, as those of masked logits and of minus infinity are; log sum exp [m];
  // unless null the entropy [m] in nats. All of a row is NaN where a logit is NaN or plus infinity.
  void (*softmax)(const float* logits, std::int64_t m, std::int64_t n, float* probability,
                  float* log_normaliser, float* entropy);
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
    multiply(nullptr, x, ldx, m, k, w, n, n, y, n);
  }
  void outer_add(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
                 std::int64_t n, float* w) const {
    outer(x, ldx, m, k, y, n, n, w, n);
  }
};

// Weights w [k, n] in the order in which a table's products read them.
class PackedWeights {
 public:
  PackedWeights(const DenseKernels& kernels, std::int64_t k, std::int64_t n)
      : kernels_(&kernels),
        k_(k),
        n_(n),
        packed_(static_cast<std::size_t>(kernels.packed_floats(k, n))) {}

  // Again whenever w has changed; w must stay until the last product. Allocates nothing.
  void Pack(const float* w) {
    if (!packed_.empty()) kernels_->pack(w, k_, n_, packed_.data());
    w_ = packed_.empty() ? w : packed_.data();
  }
  // DenseKernels::multiply_from. Any threads, between two calls of Pack.
  void Multiply(const float* start, const std::int32_t* of, const float* x, std::int64_t ldx,
                std::int64_t m, float* y) const {
    kernels_->multiply_from(start, of, x, ldx, m, k_, w_, n_, y);
  }

 private:
  const DenseKernels* kernels_;
  std::int64_t k_, n_;
  std::vector<float> packed_;
  const float* w_ = nullptr;
};

// The fastest table of the precision that this processor runs. kF32: AVX-512, with products of
// packed weights on the matrix unit (AMX) where there is one, or the build's baseline. kBf16:
// AVX-512 BF16, where there is that and no matrix unit; otherwise kF32's. (A matrix unit multiplies
// f32 as three of bf16.) With the tensor library's variable ATEN_CPU_CAPABILITY=avx512 it does
// without both, with avx2 or default it is the baseline, so that a test can run as on an older
// processor.
const DenseKernels& BestDenseKernels(Precision precision = Precision::kF32);
// Every table that this processor runs, whatever the variable says: for tests that compare them.
std::vector<const DenseKernels*> AllDenseKernels();

}  // namespace tetrion
