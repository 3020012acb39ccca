#pragma once

#include <cstdint>
#include <cstdlib>

#include "lib/nn/dreamer/update_kernels.h"

namespace tetrion::testing {

// Kernels that nothing is asked of.
class UnusedKernels final : public UpdateKernels {
 public:
  void NormSiluForward(const float*, std::int64_t, std::int64_t, const float*, float*, float*,
                       float*) override {
    std::abort();
  }
  void NormSiluBackward(const float*, const float*, std::int64_t, std::int64_t, const float*,
                        const float*, const float*, float*, float*) override {
    std::abort();
  }
  void GruForward(const float*, const float*, std::int64_t, std::int64_t, float*, float*) override {
    std::abort();
  }
  void GruBackward(const float*, const float*, const float*, const float*, std::int64_t,
                   std::int64_t, float*, float*) override {
    std::abort();
  }
  void DrawOneHots(const float*, std::int64_t, std::int64_t, const UpdateDraw&, float*) override {
    std::abort();
  }
};

}  // namespace tetrion::testing
