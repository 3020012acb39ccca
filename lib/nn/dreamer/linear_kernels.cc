#include "lib/nn/dreamer/linear_kernels.h"

#include <omp.h>

#include <algorithm>

#include "lib/nn/dense_kernels.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLeastWork = 1 << 16;  // multiplications for which waking a thread pays

}  // namespace

std::int64_t GrainOf(std::int64_t work_a_row) {
  return 1 + kLeastWork / std::max<std::int64_t>(work_a_row, 1);
}

void ForRows(std::int64_t count, std::int64_t grain,
             const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t pieces =
      std::min<std::int64_t>(omp_get_max_threads(), count / std::max<std::int64_t>(grain, 1));
  if (pieces <= 1) {
    if (count > 0) work(0, count);
    return;
  }
#pragma omp parallel for schedule(static, 1)
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    work(count * piece / pieces, count * (piece + 1) / pieces);
  }
}

void ForFewRows(std::int64_t count, std::int64_t grain,
                const std::function<void(std::int64_t, std::int64_t)>& work) {
  ForRows(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; begin += kRowsAtOnce) work(begin, std::min(begin + kRowsAtOnce, end));
  });
}

void SumRows(const float* y, std::int64_t rows, std::int64_t n, float* sum) {
  std::fill_n(sum, n, 0.0F);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) sum[i] += y[row * n + i];
  }
}

void MultiplyRows(const float* bias, const float* x, std::int64_t ldx, std::int64_t m,
                  std::int64_t k, const float* w, std::int64_t ldw, std::int64_t n, float* y,
                  std::int64_t ldy) {
  const DenseKernels& kernels = BestDenseKernels();
  ForFewRows(m, GrainOf(k * n), [&](std::int64_t begin, std::int64_t end) {
    kernels.multiply(bias, x + begin * ldx, ldx, end - begin, k, w, ldw, n, y + begin * ldy, ldy);
  });
}

void OuterRows(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
               std::int64_t ldy, std::int64_t n, float* w, std::int64_t ldw) {
  const DenseKernels& kernels = BestDenseKernels();
  ForRows(k, GrainOf(m * n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = 0; row < m; row += kRowsAtOnce) {
      kernels.outer(x + row * ldx + begin, ldx, std::min(kRowsAtOnce, m - row), end - begin,
                    y + row * ldy, ldy, n, w + begin * ldw, ldw);
    }
  });
}

}  // namespace tetrion
