#pragma once

#include "lib/cuda/kernel.h"

namespace tetrion {

// Sum over the block of kThreads threads of term(i) for i below `count`, known to every thread. It
// holds two barriers, the second one behind the last use of what the threads share.
template <unsigned kThreads, typename Term>
__device__ inline float BlockSum(unsigned count, const Term& term) {
  TETRION_SHARED(float, of_warp, kThreads / 32);
  float sum = 0.0F;
  for (unsigned i = threadIdx.x; i < count; i += kThreads) sum += term(i);
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, bits);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  float all = 0.0F;
  for (unsigned warp = 0; warp < kThreads / 32; ++warp) all += of_warp[warp];
  __syncthreads();
  return all;
}

}  // namespace tetrion
