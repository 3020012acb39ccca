#pragma once

#include <cstddef>

#include "lib/nn/mlp.h"

namespace tetrion {

// How a block of the kernel of network `mlp` (mlp_kernels.cuh) divides the work. The distance
// between two rows of shared memory is a multiple of four floats, for loads of 16 bytes, and
// spreads the lanes' writes over the banks. tools/kernel_resources.py knows threads and bytes, too.
template <unsigned kShapeUnits, unsigned kBlockLanes>
struct MlpPlan {
  static constexpr bool kNormed = kShapeUnits == kWideMlpUnits;
  static constexpr unsigned kUnits = kShapeUnits;
  static constexpr unsigned kThreads = kNormed ? 128 : 64;
  static constexpr unsigned kThreadUnits = kUnits / kThreads;  // t, t + kThreads, ...
  static constexpr unsigned kLanes = kBlockLanes;
  static constexpr unsigned kStride = kLanes + 4;
  static constexpr unsigned kChunk = 32;  // inputs
  static constexpr std::size_t kSharedBytes = (kChunk + kUnits) * kStride * sizeof(float);
};

}  // namespace tetrion
