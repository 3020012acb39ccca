#include "lib/nn/cuda/device_update_kernels.h"

#include "lib/cuda/launch.h"
#include "lib/nn/cuda/update_kernels.cuh"

namespace tetrion {
namespace {

using In = cuda::DeviceSpan<const float>;
using Out = cuda::DeviceSpan<float>;

std::size_t Count(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(rows * width);
}

}  // namespace

void DeviceUpdateKernels::Launched() {
  if (stream_.native() == nullptr) stream_.Synchronize();
}

void DeviceUpdateKernels::NormSiluForward(const float* x, std::int64_t rows, std::int64_t width,
                                          const float* scale, float* y, float* slope,
                                          float* inverse) {
  const std::size_t n = Count(rows, width);
  cuda::Launch(stream_, NormSiluRows, static_cast<unsigned>(NormSiluParts(rows)), kUpdateThreads, 0,
               In(x, n), static_cast<unsigned>(rows), static_cast<unsigned>(width),
               In(scale, Count(1, width)), Out(y, n), Out(slope, slope == nullptr ? 0 : n),
               Out(inverse, Count(rows, 1)));
  Launched();
}

void DeviceUpdateKernels::NormSiluBackward(const float* grad, const float* x, std::int64_t rows,
                                           std::int64_t width, const float* scale,
                                           const float* slope, const float* inverse, float* grad_x,
                                           float* scale_parts) {
  const std::size_t n = Count(rows, width);
  const std::int64_t parts = NormSiluParts(rows);
  cuda::Launch(stream_, NormSiluSlopes, static_cast<unsigned>(parts), kUpdateThreads, 0,
               In(grad, n), In(x, n), static_cast<unsigned>(rows), static_cast<unsigned>(width),
               In(scale, Count(1, width)), In(slope, n), In(inverse, Count(rows, 1)),
               Out(grad_x, n), Out(scale_parts, Count(parts, width)));
  Launched();
}

void DeviceUpdateKernels::GruForward(const float* gates, const float* deter, std::int64_t rows,
                                     std::int64_t width, float* out, float* parts) {
  const std::size_t n = Count(rows, width);
  cuda::Launch(stream_, GruGates, cuda::BlocksFor(n, kUpdateThreads), kUpdateThreads, 0,
               In(gates, 3 * n), In(deter, n), static_cast<unsigned>(width), Out(out, n),
               Out(parts, 3 * n));
  Launched();
}

void DeviceUpdateKernels::GruBackward(const float* grad, const float* gates, const float* deter,
                                      const float* parts, std::int64_t rows, std::int64_t width,
                                      float* grad_gates, float* grad_deter) {
  const std::size_t n = Count(rows, width);
  cuda::Launch(stream_, GruGateSlopes, cuda::BlocksFor(n, kUpdateThreads), kUpdateThreads, 0,
               In(grad, n), In(gates, 3 * n), In(deter, n), In(parts, 3 * n),
               static_cast<unsigned>(width), Out(grad_gates, 3 * n), Out(grad_deter, n));
  Launched();
}

void DeviceUpdateKernels::DrawOneHots(const float* probs, std::int64_t rows, std::int64_t classes,
                                      const UpdateDraw& draw, float* out) {
  const std::size_t n = Count(rows, classes);
  cuda::Launch(stream_, OneHotRows,
               cuda::BlocksFor(static_cast<std::uint64_t>(rows), kUpdateThreads), kUpdateThreads, 0,
               In(probs, n), static_cast<unsigned>(rows), static_cast<unsigned>(classes), draw,
               Out(out, n));
  Launched();
}

}  // namespace tetrion
