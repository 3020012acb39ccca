#include "lib/nn/board_net.h"

#include <algorithm>

#include "lib/nn/multiply_by.h"

namespace tetrion {
namespace {

// Keeps a sum over ten columns near the size of a layer's other inputs.
constexpr float kSumScale = 0.25F;

// Adds the row `x` [n] to `y`.
void AddRow(const float* x, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += x[i];
}

// Copies `row` [n] to every row of y [m, n].
void RepeatRow(const float* row, std::int64_t m, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < m; ++i) std::copy_n(row, n, y + i * n);
}

}  // namespace

BoardNet::BoardNet(const std::string& prefix, int columns, int rest, std::int64_t units,
                   Precision precision, const AddTensor& add)
    : columns_(columns), rest_(rest), units_(units), kernels_(BestDenseKernels(precision)) {
  w1_ = add(prefix + ".column.1.weight", {BoardWindows::kBits, units});
  b1_ = add(prefix + ".column.1.bias", {units});
  w2_ = add(prefix + ".column.2.weight", {units, units});
  b2_ = add(prefix + ".column.2.bias", {units});
  w3_ = add(prefix + ".board.weight", {units, units});
  rest_w_ = add(prefix + ".rest.weight", {rest, units});
  b3_ = add(prefix + ".board.bias", {units});
  w4_ = add(prefix + ".head.weight", {units, 1});
  b4_ = add(prefix + ".head.bias", {1});
}

void BoardNet::Allocate(int max_boards, bool training, Workspace& work) const {
  work.windows.Allocate(max_boards, columns_);
  const auto of_boards = static_cast<std::size_t>(max_boards * units_);
  const std::size_t of_windows = of_boards * static_cast<std::size_t>(columns_);
  work.active1.resize(of_windows);
  work.active2.resize(of_windows);
  work.sum.resize(of_boards);
  work.active3.resize(of_boards);
  if (!training) return;
  for (auto* buffer : {&work.slope1, &work.slope2, &work.grad1, &work.grad2}) {
    buffer->resize(of_windows);
  }
  for (auto* buffer : {&work.slope3, &work.grad3, &work.grad_sum}) buffer->resize(of_boards);
}

BoardNet::Packed BoardNet::AllocatePacked() const {
  const PackedWeights square(kernels_, units_, units_);
  const std::vector<float> transposed(static_cast<std::size_t>(units_ * units_));
  return {square, square, square, square, transposed, transposed};
}

void BoardNet::PackForward(const float* parameters, Packed& packed) const {
  packed.w2.Pack(parameters + w2_);
  packed.w3.Pack(parameters + w3_);
}

void BoardNet::PackBackward(const float* parameters, Packed& packed) const {
  kernels_.transpose(parameters + w2_, units_, units_, packed.w2_transposed.data());
  kernels_.transpose(parameters + w3_, units_, units_, packed.w3_transposed.data());
  packed.w2_back.Pack(packed.w2_transposed.data());
  packed.w3_back.Pack(packed.w3_transposed.data());
}

void BoardNet::Forward(const float* parameters, const Packed& packed, const float* boards, int n,
                       bool slopes, Workspace& work, float* out) const {
  const std::int64_t h = units_, stride = columns_ + rest_;
  const auto silu = [&](std::vector<float>& active, std::int64_t rows, std::vector<float>& slope) {
    kernels_.silu(active.data(), rows, h, active.data(), slopes ? slope.data() : nullptr);
  };
  work.windows.Find(boards, stride, n);
  const std::int64_t windows = work.windows.count();
  RepeatRow(parameters + b1_, windows, h, work.active1.data());
  kernels_.sum_bits(work.windows.bits(), windows, parameters + w1_, h, work.active1.data());
  silu(work.active1, windows, work.slope1);
  packed.w2.Multiply(parameters + b2_, nullptr, work.active1.data(), h, windows,
                     work.active2.data());
  silu(work.active2, windows, work.slope2);
  for (int board = 0; board < n; ++board) {
    float* sum = work.sum.data() + board * h;
    std::fill_n(sum, h, 0.0F);
    const std::int32_t* window = work.windows.OfBoard(board);
    for (int c = 0; c < columns_; ++c) AddRow(work.active2.data() + window[c] * h, h, sum);
    for (std::int64_t i = 0; i < h; ++i) sum[i] *= kSumScale;
  }
  float* active3 = work.active3.data();
  packed.w3.Multiply(parameters + b3_, nullptr, work.sum.data(), h, n, active3);
  kernels_.multiply_add(boards + columns_, stride, n, rest_, parameters + rest_w_, h, active3);
  silu(work.active3, n, work.slope3);
  kernels_.dot(active3, n, h, parameters + w4_, parameters[b4_], out);
}

void BoardNet::Backward(const float* parameters, const Packed& packed, const float* boards,
                        const float* grad_out, Workspace& work, float* gradients) const {
  const std::int64_t h = units_, stride = columns_ + rest_;
  const std::int64_t n = work.windows.boards(), windows = work.windows.count();
  // Through the dot product: d w4 = active3^T g, d b4 = sum g.
  kernels_.multiply_add(grad_out, n, 1, n, work.active3.data(), h, gradients + w4_);
  for (std::int64_t i = 0; i < n; ++i) gradients[b4_] += grad_out[i];
  float* grad3 = work.grad3.data();
  kernels_.dot_backward(grad_out, n, h, parameters + w4_, work.slope3.data(), grad3);
  kernels_.outer_add(work.sum.data(), h, n, h, grad3, h, gradients + w3_);
  kernels_.outer_add(boards + columns_, stride, n, rest_, grad3, h, gradients + rest_w_);
  kernels_.column_sum(grad3, n, h, gradients + b3_);
  float* grad_sum = work.grad_sum.data();
  packed.w3_back.Multiply(nullptr, nullptr, grad3, h, n, grad_sum);
  for (std::int64_t i = 0; i < n * h; ++i) grad_sum[i] *= kSumScale;
  // Through the sums: a window has the slopes of all boards that it is in.
  float* grad2 = work.grad2.data();
  std::fill_n(grad2, windows * h, 0.0F);
  for (int board = 0; board < n; ++board) {
    const std::int32_t* window = work.windows.OfBoard(board);
    for (int c = 0; c < columns_; ++c) AddRow(grad_sum + board * h, h, grad2 + window[c] * h);
  }
  MultiplyBy(work.slope2.data(), windows * h, grad2);
  kernels_.outer_add(work.active1.data(), h, windows, h, grad2, h, gradients + w2_);
  kernels_.column_sum(grad2, windows, h, gradients + b2_);
  float* grad1 = work.grad1.data();
  packed.w2_back.Multiply(nullptr, nullptr, grad2, h, windows, grad1);
  MultiplyBy(work.slope1.data(), windows * h, grad1);
  kernels_.add_bits(work.windows.bits(), windows, grad1, h, gradients + w1_);
  kernels_.column_sum(grad1, windows, h, gradients + b1_);
}

}  // namespace tetrion
