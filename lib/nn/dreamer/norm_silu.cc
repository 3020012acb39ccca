#include "lib/nn/dreamer/norm_silu.h"

#include <algorithm>
#include <cmath>

#include "lib/nn/dense_kernels.h"
#include "lib/nn/dreamer/dreamer_shape.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLanes = 16;     // partial sums: a compiler may keep them in vectors
constexpr std::int64_t kSiluStep = 64;  // floats that the dense kernel takes at a time

// Sum of term(i) for i in [0, count), in kLanes partial sums.
template <typename Term>
inline float Sum(std::int64_t count, const Term& term) {
  float partial[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) partial[lane] += term(i + lane);
  }
  float sum = 0;
  for (; i < count; ++i) sum += term(i);
  for (const float part : partial) sum += part;
  return sum;
}

// y = silu(y) of any number of floats. The last ones go through the same arithmetic, so that a
// float's result does not depend on how many are asked for at once.
void Silu(float* y, float* slope, std::int64_t count) {
  const DenseKernels& kernels = BestDenseKernels();
  const std::int64_t whole = count / kSiluStep * kSiluStep;
  if (whole > 0) kernels.silu(y, 1, whole, y, slope);
  if (whole == count) return;
  float last[kSiluStep] = {}, last_slope[kSiluStep];
  std::copy(y + whole, y + count, last);
  kernels.silu(last, 1, kSiluStep, last, last_slope);
  std::copy_n(last, count - whole, y + whole);
  if (slope != nullptr) std::copy_n(last_slope, count - whole, slope + whole);
}

}  // namespace

void NormSiluForward(const float* x, std::int64_t rows, std::int64_t width, const float* scale,
                     float* y, float* slope, float* inverse) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    const float squares = Sum(width, [&](std::int64_t i) { return in[i] * in[i]; });
    const float factor = 1.0F / std::sqrt(squares / static_cast<float>(width) + kNormEpsilon);
    inverse[row] = factor;
    for (std::int64_t i = 0; i < width; ++i) out[i] = in[i] * factor * scale[i];
  }
  Silu(y, slope, rows * width);
}

void NormSiluBackward(const float* grad, const float* x, std::int64_t rows, std::int64_t width,
                      const float* scale, const float* slope, const float* inverse, float* grad_x,
                      float* grad_scale) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t start = row * width;
    const float* g = grad + start;
    const float* s = slope + start;
    const float* in = x + start;
    float* out = grad_x + start;
    const float factor = inverse[row];
    // The gradient of n = x * factor is grad * slope * scale; a row's n keeps its length.
    for (std::int64_t i = 0; i < width; ++i) {
      const float inner = g[i] * s[i];
      grad_scale[i] += inner * in[i] * factor;
      out[i] = inner * scale[i];
    }
    const float along = Sum(width, [&](std::int64_t i) { return out[i] * in[i]; });
    const float back = along * factor * factor / static_cast<float>(width);
    for (std::int64_t i = 0; i < width; ++i) out[i] = factor * (out[i] - back * in[i]);
  }
}

}  // namespace tetrion
