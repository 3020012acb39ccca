#pragma once

#include <cstdint>
#include <span>

namespace tetrion {

// Kernels of what a recurrent step does with few numbers, f32 on the CPU, one thread. Buffers are
// contiguous; outputs must not overlap inputs.

// Gates of a recurrent unit. gates [R, 3, W] are (reset, candidate, update) of R = rows x blocks,
// deter [R, W]: out [R, W] = u t + (1 - u) deter, where r = sigmoid(reset), t = tanh(r candidate)
// and u = sigmoid(update - 1). parts [R, 3, W] = (r, t, u), for the backward pass, unless null.
void GruForward(const float* gates, const float* deter, std::int64_t rows, std::int64_t width,
                float* out, float* parts);
// grad_gates [R, 3, W] and grad_deter [R, W] for d loss / d out `grad` [R, W].
void GruBackward(const float* grad, const float* gates, const float* deter, const float* parts,
                 std::int64_t rows, std::int64_t width, float* grad_gates, float* grad_deter);

// softmax [R, C] of logits [R, C], and mixed = (1 - share) softmax + share / C.
void UnimixForward(const float* logits, std::int64_t rows, std::int64_t classes, float share,
                   float* softmax, float* mixed);
// grad_logits [R, C] for d loss / d log(mixed) `grad` [R, C].
void UnimixBackward(const float* grad, const float* softmax, const float* mixed, std::int64_t rows,
                    std::int64_t classes, float share, float* grad_logits);

// out [R] = sum over i of (p[middle + 1 + i] - p[middle - 1 - i]) upper[i], where p = softmax of a
// row of logits [R, 2 M + 1] with M = upper.size() = middle: the mean of the values -upper, 0,
// upper, and exactly 0 for equal logits.
void TwoHotMeans(const float* logits, std::int64_t rows, std::span<const float> upper, float* out);

}  // namespace tetrion
