#pragma once

#include "lib/cuda/stream.h"
#include "lib/nn/dreamer/update_kernels.h"

namespace tetrion {

// The kernels on a stream, which outlives them. On a device the tensor library works on the same
// stream; on a simulated one it works on the calling thread, so there a call also waits for its
// kernel.
class DeviceUpdateKernels final : public UpdateKernels {
 public:
  explicit DeviceUpdateKernels(cuda::Stream& stream) : stream_(stream) {}

  void NormSiluForward(const float* x, std::int64_t rows, std::int64_t width, const float* scale,
                       float* y, float* slope, float* inverse) override;
  void NormSiluBackward(const float* grad, const float* x, std::int64_t rows, std::int64_t width,
                        const float* scale, const float* slope, const float* inverse, float* grad_x,
                        float* scale_parts) override;
  void GruForward(const float* gates, const float* deter, std::int64_t rows, std::int64_t width,
                  float* out, float* parts) override;
  void GruBackward(const float* grad, const float* gates, const float* deter, const float* parts,
                   std::int64_t rows, std::int64_t width, float* grad_gates,
                   float* grad_deter) override;
  void DrawOneHots(const float* probs, std::int64_t rows, std::int64_t classes,
                   const UpdateDraw& draw, float* out) override;

 private:
  void Launched();

  cuda::Stream& stream_;
};

}  // namespace tetrion
