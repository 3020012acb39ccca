#include "lib/nn/dreamer/step_kernels.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "lib/core/check.h"
#include "lib/nn/dreamer/fast_exp.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLanes = 16;  // partial results: a compiler may keep them in vectors
constexpr std::int64_t kMostBins = 512;

// Calls work(i, lane) for every i in [0, count), each lane for its own.
template <typename Work>
inline void EachLane(std::int64_t count, const Work& work) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) work(i + lane, lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) work(i, lane);
}

// One block; the parts are kept at `r`, `t` and `u`. The restrict qualifiers let the compiler use
// vectors.
template <bool kKeep>
void GateBlock(const float* __restrict reset, const float* __restrict candidate,
               const float* __restrict update, const float* __restrict deter, std::int64_t width,
               float* __restrict out, float* __restrict r, float* __restrict t,
               float* __restrict u) {
  for (std::int64_t i = 0; i < width; ++i) {
    const float opened = FastSigmoid(reset[i]);
    const float fresh = FastTanh(opened * candidate[i]);
    const float share = FastSigmoid(update[i] - 1.0F);
    if constexpr (kKeep) {
      r[i] = opened;
      t[i] = fresh;
      u[i] = share;
    }
    out[i] = share * fresh + (1.0F - share) * deter[i];
  }
}

template <bool kKeep>
void Gates(const float* gates, const float* deter, std::int64_t rows, std::int64_t width,
           float* out, float* parts) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* in = gates + row * 3 * width;
    float* kept = kKeep ? parts + row * 3 * width : nullptr;
    GateBlock<kKeep>(in, in + width, in + 2 * width, deter + row * width, width, out + row * width,
                     kept, kKeep ? kept + width : nullptr, kKeep ? kept + 2 * width : nullptr);
  }
}

}  // namespace

void GruForward(const float* gates, const float* deter, std::int64_t rows, std::int64_t width,
                float* out, float* parts) {
  const auto work = parts == nullptr ? Gates<false> : Gates<true>;
  work(gates, deter, rows, width, out, parts);
}

void GruBackward(const float* grad, const float* gates, const float* deter, const float* parts,
                 std::int64_t rows, std::int64_t width, float* __restrict grad_gates,
                 float* __restrict grad_deter) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* candidate = gates + (row * 3 + 1) * width;
    const float* old = deter + row * width;
    const float* r = parts + row * 3 * width;
    const float* t = r + width;
    const float* u = t + width;
    const float* g = grad + row * width;
    float* of_reset = grad_gates + row * 3 * width;
    float* of_candidate = of_reset + width;
    float* of_update = of_candidate + width;
    for (std::int64_t i = 0; i < width; ++i) {
      const float inner = g[i] * u[i] * (1.0F - t[i] * t[i]);
      of_reset[i] = inner * candidate[i] * r[i] * (1.0F - r[i]);
      of_candidate[i] = inner * r[i];
      of_update[i] = g[i] * (t[i] - old[i]) * u[i] * (1.0F - u[i]);
      grad_deter[row * width + i] = g[i] * (1.0F - u[i]);
    }
  }
}

void UnimixForward(const float* logits, std::int64_t rows, std::int64_t classes, float share,
                   float* __restrict softmax, float* __restrict mixed) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* in = logits + row * classes;
    float* out = softmax + row * classes;
    float highest = in[0];
    for (std::int64_t c = 1; c < classes; ++c) highest = std::max(highest, in[c]);
    for (std::int64_t c = 0; c < classes; ++c) out[c] = in[c] - highest;
  }
  for (std::int64_t i = 0; i < rows * classes; ++i) softmax[i] = FastExp(softmax[i]);
  const float uniform = share / static_cast<float>(classes);
  for (std::int64_t row = 0; row < rows; ++row) {
    float* p = softmax + row * classes;
    float* m = mixed + row * classes;
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += p[c];
    const float factor = 1.0F / sum;
    for (std::int64_t c = 0; c < classes; ++c) {
      p[c] *= factor;
      m[c] = (1.0F - share) * p[c] + uniform;
    }
  }
}

void UnimixBackward(const float* grad, const float* softmax, const float* mixed, std::int64_t rows,
                    std::int64_t classes, float share, float* __restrict grad_logits) {
  for (std::int64_t i = 0; i < rows * classes; ++i) {
    grad_logits[i] = (1.0F - share) * softmax[i] * grad[i] / mixed[i];
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* p = softmax + row * classes;
    float* out = grad_logits + row * classes;
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += out[c];
    for (std::int64_t c = 0; c < classes; ++c) out[c] -= p[c] * sum;
  }
}

void TwoHotMeans(const float* logits, std::int64_t rows, std::span<const float> upper, float* out) {
  const auto half = static_cast<std::int64_t>(upper.size()), bins = 2 * half + 1;
  TETRION_CHECK(bins <= kMostBins, "a row of logits fits the buffer");
  float p[kMostBins];
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* in = logits + row * bins;
    float highest[kLanes], sum[kLanes] = {};
    for (float& lane : highest) lane = in[0];
    EachLane(bins, [&](std::int64_t i, std::int64_t lane) {
      highest[lane] = in[i] > highest[lane] ? in[i] : highest[lane];
    });
    const float top = *std::max_element(highest, highest + kLanes);
    for (std::int64_t i = 0; i < bins; ++i) p[i] = FastExp(in[i] - top);
    EachLane(bins, [&](std::int64_t i, std::int64_t lane) { sum[lane] += p[i]; });
    double excess[kLanes] = {};
    EachLane(half, [&](std::int64_t i, std::int64_t lane) {
      excess[lane] += static_cast<double>(p[half + 1 + i] - p[half - 1 - i]) *
                      static_cast<double>(upper[static_cast<std::size_t>(i)]);
    });
    out[row] = static_cast<float>(std::accumulate(excess, excess + kLanes, 0.0) /
                                  static_cast<double>(std::accumulate(sum, sum + kLanes, 0.0F)));
  }
}

}  // namespace tetrion
