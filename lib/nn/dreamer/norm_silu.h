#pragma once

#include <cstdint>

namespace tetrion {

// Kernels of silu(rms_norm(x)), f32 on the CPU, one thread: a hidden layer's norm and activation in
// one pass, since most layers of DreamerV3 are small and tensor operations would cost more than
// their arithmetic. Rows are contiguous; outputs must not overlap inputs unless said.

// y [N, W] = silu(x / sqrt(mean(x^2) + 1e-4) * scale), which may be x, its slope silu'(...) [N, W]
// (null: not wanted), and the rows' factors `inverse` [N] = 1 / sqrt(...).
void NormSiluForward(const float* x, std::int64_t rows, std::int64_t width, const float* scale,
                     float* y, float* slope, float* inverse);

// grad_x [N, W] for d loss / d y `grad` [N, W], with what the forward pass kept; adds to grad_scale
// [W].
void NormSiluBackward(const float* grad, const float* x, std::int64_t rows, std::int64_t width,
                      const float* scale, const float* slope, const float* inverse, float* grad_x,
                      float* grad_scale);

}  // namespace tetrion
