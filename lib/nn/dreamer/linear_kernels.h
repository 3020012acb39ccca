#pragma once

#include <cstdint>
#include <functional>

namespace tetrion {

// Products of linear layers, f32 on the CPU, on the kernels of lib/nn/dense_kernels.h. Their rows
// are shared among as many threads as the tensor library may use here; results do not depend on how
// many these are. Matrices are row-major; "ld" is the distance of a matrix's rows. Outputs must not
// overlap inputs.

// Calls work(begin, end) for pieces that together are [0, count), each at least `grain` long where
// there are so many, on several threads at once.
void ForRows(std::int64_t count, std::int64_t grain,
             const std::function<void(std::int64_t, std::int64_t)>& work);

// The same, but no call of `work` has more than kRowsAtOnce rows: they and their results stay in
// the cache.
inline constexpr std::int64_t kRowsAtOnce = 64;
void ForFewRows(std::int64_t count, std::int64_t grain,
                const std::function<void(std::int64_t, std::int64_t)>& work);

// A grain for ForRows: the rows that make a thread worth waking, at `work_a_row` multiplications.
std::int64_t GrainOf(std::int64_t work_a_row);

// sum [n] = the sum of the rows of y [rows, n].
void SumRows(const float* y, std::int64_t rows, std::int64_t n, float* sum);

// y [m, n] = bias [n] + x [m, k] w [k, n], or y += x w where bias is null.
void MultiplyRows(const float* bias, const float* x, std::int64_t ldx, std::int64_t m,
                  std::int64_t k, const float* w, std::int64_t ldw, std::int64_t n, float* y,
                  std::int64_t ldy);

// w [k, n] += x^T y for x [m, k] and y [m, n].
void OuterRows(const float* x, std::int64_t ldx, std::int64_t m, std::int64_t k, const float* y,
               std::int64_t ldy, std::int64_t n, float* w, std::int64_t ldw);

}  // namespace tetrion
