#pragma once

#include <cstdint>

namespace tetrion {

// Which draws of an update (lib/nn/dreamer/draw_one_hots.h).
struct UpdateDraw {
  std::uint64_t seed = 1;
  const std::int64_t* updates = nullptr;  // one number, where the kernels' memory is
  std::uint32_t first_block = 0;          // of the update's draws
};

// Kernels of DreamerV3's update on a device, for what would be many small operations of the tensor
// library. Their twins on the CPU: lib/nn/dreamer/norm_silu.h, step_kernels.h and draw_one_hots.h.
// Pointers are the device's memory, rows contiguous f32. Calls enqueue work behind what the thread
// has given the device, and return.
class UpdateKernels {
 public:
  virtual ~UpdateKernels() = default;

  // As ::tetrion::NormSiluForward; `slope` null: not wanted.
  virtual void NormSiluForward(const float* x, std::int64_t rows, std::int64_t width,
                               const float* scale, float* y, float* slope, float* inverse) = 0;
  // As ::tetrion::NormSiluBackward, but for the scale's gradient: `scale_parts` [NormSiluParts, W]
  // is overwritten with what adds up to it.
  virtual void NormSiluBackward(const float* grad, const float* x, std::int64_t rows,
                                std::int64_t width, const float* scale, const float* slope,
                                const float* inverse, float* grad_x, float* scale_parts) = 0;
  // As ::tetrion::GruForward and ::tetrion::GruBackward.
  virtual void GruForward(const float* gates, const float* deter, std::int64_t rows,
                          std::int64_t width, float* out, float* parts) = 0;
  virtual void GruBackward(const float* grad, const float* gates, const float* deter,
                           const float* parts, std::int64_t rows, std::int64_t width,
                           float* grad_gates, float* grad_deter) = 0;
  // probs [N, C] -> out [N, C] one-hot, each row's class as DrawClass.
  virtual void DrawOneHots(const float* probs, std::int64_t rows, std::int64_t classes,
                           const UpdateDraw& draw, float* out) = 0;
};

inline constexpr std::int64_t kNormSiluPartRows = 8;
inline std::int64_t NormSiluParts(std::int64_t rows) {
  return (rows + kNormSiluPartRows - 1) / kNormSiluPartRows;
}

// While it lives, the primitives of the calling thread compute with `kernels`, which outlives it
// and the backward pass of what was computed. Scopes do not nest.
class UpdateKernelsScope {
 public:
  explicit UpdateKernelsScope(UpdateKernels& kernels);
  ~UpdateKernelsScope();
  UpdateKernelsScope(const UpdateKernelsScope&) = delete;
  UpdateKernelsScope& operator=(const UpdateKernelsScope&) = delete;
};

// Of the scope that the calling thread is in; null outside of one.
UpdateKernels* CurrentUpdateKernels();

}  // namespace tetrion
