#pragma once

#include <cmath>

#include "lib/cuda/kernel.h"
#include "lib/nn/cuda/block_sum.cuh"
#include "lib/nn/dreamer/draw_one_hots.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/dreamer/update_kernels.h"

// What lib/nn/dreamer/update_kernels.h describes. Numeric policy: f32 with the device's functions,
// where the CPU takes approximations within 2e-7; a row's sums are those of its block's threads, in
// an order that does not depend on other rows.

namespace tetrion {

inline constexpr unsigned kUpdateThreads = 128;

// Rows of a block of the norm's kernels.
struct PartRows {
  __device__ explicit PartRows(unsigned rows)
      : begin(blockIdx.x * static_cast<unsigned>(kNormSiluPartRows)),
        end(begin + kNormSiluPartRows < rows ? begin + static_cast<unsigned>(kNormSiluPartRows)
                                             : rows) {}
  unsigned begin, end;
};

// x [N, W] -> y [N, W], slope [N, W] (empty: not wanted), inverse [N].
__global__ void __launch_bounds__(kUpdateThreads)
    NormSiluRows(cuda::DeviceSpan<const float> x, unsigned rows, unsigned width,
                 cuda::DeviceSpan<const float> scale, cuda::DeviceSpan<float> y,
                 cuda::DeviceSpan<float> slope, cuda::DeviceSpan<float> inverse) {
  const PartRows mine(rows);
  for (unsigned row = mine.begin; row < mine.end; ++row) {
    const std::size_t at = std::size_t{row} * width;
    const float squares =
        BlockSum<kUpdateThreads>(width, [&](unsigned i) { return x[at + i] * x[at + i]; });
    const float factor = 1.0F / std::sqrt(squares / static_cast<float>(width) + kNormEpsilon);
    for (unsigned i = threadIdx.x; i < width; i += kUpdateThreads) {
      const float normed = x[at + i] * factor * scale[i];
      const float sigmoid = 1.0F / (1.0F + std::exp(-normed));
      const float out = normed * sigmoid;
      y[at + i] = out;
      if (slope.size() > 0) slope[at + i] = sigmoid + out * (1.0F - sigmoid);
    }
    if (threadIdx.x == 0) inverse[row] = factor;
  }
}

// The gradient of NormSiluRows with what it kept; a block has a row of scale_parts [blocks, W].
__global__ void __launch_bounds__(kUpdateThreads)
    NormSiluSlopes(cuda::DeviceSpan<const float> grad, cuda::DeviceSpan<const float> x,
                   unsigned rows, unsigned width, cuda::DeviceSpan<const float> scale,
                   cuda::DeviceSpan<const float> slope, cuda::DeviceSpan<const float> inverse,
                   cuda::DeviceSpan<float> grad_x, cuda::DeviceSpan<float> scale_parts) {
  const PartRows mine(rows);
  const std::size_t part = std::size_t{blockIdx.x} * width;
  for (unsigned i = threadIdx.x; i < width; i += kUpdateThreads) scale_parts[part + i] = 0.0F;
  for (unsigned row = mine.begin; row < mine.end; ++row) {
    const std::size_t at = std::size_t{row} * width;
    const float factor = inverse[row];
    // The gradient of n = x * factor is grad * slope * scale; a row's n keeps its length.
    const float along = BlockSum<kUpdateThreads>(
        width, [&](unsigned i) { return grad[at + i] * slope[at + i] * scale[i] * x[at + i]; });
    const float back = along * factor * factor / static_cast<float>(width);
    for (unsigned i = threadIdx.x; i < width; i += kUpdateThreads) {
      const float inner = grad[at + i] * slope[at + i], value = x[at + i];
      scale_parts[part + i] += inner * value * factor;
      grad_x[at + i] = factor * (inner * scale[i] - back * value);
    }
  }
}

__device__ inline float Sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

// A thread a number of deter [N, W]: gates and parts [N, 3, W] as (reset, candidate, update).
__global__ void __launch_bounds__(kUpdateThreads)
    GruGates(cuda::DeviceSpan<const float> gates, cuda::DeviceSpan<const float> deter,
             unsigned width, cuda::DeviceSpan<float> out, cuda::DeviceSpan<float> parts) {
  const std::size_t i = std::size_t{blockIdx.x} * kUpdateThreads + threadIdx.x;
  if (i >= deter.size()) return;
  const std::size_t at = i / width * 3 * width + i % width;
  const float reset = Sigmoid(gates[at]);
  const float candidate = std::tanh(reset * gates[at + width]);
  const float update = Sigmoid(gates[at + 2 * width] - 1.0F);
  parts[at] = reset;
  parts[at + width] = candidate;
  parts[at + 2 * width] = update;
  out[i] = update * candidate + (1.0F - update) * deter[i];
}

// The gradient of GruGates with the parts that it kept.
__global__ void __launch_bounds__(kUpdateThreads)
    GruGateSlopes(cuda::DeviceSpan<const float> grad, cuda::DeviceSpan<const float> gates,
                  cuda::DeviceSpan<const float> deter, cuda::DeviceSpan<const float> parts,
                  unsigned width, cuda::DeviceSpan<float> grad_gates,
                  cuda::DeviceSpan<float> grad_deter) {
  const std::size_t i = std::size_t{blockIdx.x} * kUpdateThreads + threadIdx.x;
  if (i >= deter.size()) return;
  const std::size_t at = i / width * 3 * width + i % width;
  const float reset = parts[at], candidate = parts[at + width], update = parts[at + 2 * width];
  const float inner = grad[i] * update * (1.0F - candidate * candidate);
  grad_gates[at] = inner * gates[at + width] * reset * (1.0F - reset);
  grad_gates[at + width] = inner * reset;
  grad_gates[at + 2 * width] = grad[i] * (candidate - deter[i]) * update * (1.0F - update);
  grad_deter[i] = grad[i] * (1.0F - update);
}

// A thread a row of probs [N, C].
__global__ void __launch_bounds__(kUpdateThreads)
    OneHotRows(cuda::DeviceSpan<const float> probs, unsigned rows, unsigned classes,
               UpdateDraw draw, cuda::DeviceSpan<float> out) {
  const unsigned row = blockIdx.x * kUpdateThreads + threadIdx.x;
  if (row >= rows) return;
  const std::size_t at = std::size_t{row} * classes;
  const cuda::DeviceSpan<const float> mine(probs.data() + at, classes);
  const PhiloxBlock words =
      UpdateWords(draw.seed, *draw.updates, draw.first_block + row / kRowsOfADraw);
  const std::uint32_t drawn = DrawClass(mine, classes, words.word[row % kRowsOfADraw]);
  for (unsigned c = 0; c < classes; ++c) out[at + c] = c == drawn ? 1.0F : 0.0F;
}

}  // namespace tetrion
