#pragma once

#include "lib/cuda/kernel_spans.h"

namespace tetrion {

// Where the parameters of a policy's `mlp` lie in device memory, as its kernels take them.
struct MlpLayer {
  cuda::DeviceSpan<const float> weight;                 // [in, out]
  cuda::DeviceSpan<const float> bias;                   // [out]
  cuda::DeviceSpan<const float> norm_scale, norm_bias;  // [out]; empty without LayerNorm
};

struct MlpWeights {
  MlpLayer layer[2];
  MlpLayer head;
  unsigned inputs = 0;   // F
  unsigned actions = 0;  // A
};

}  // namespace tetrion
