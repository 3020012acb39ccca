#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"

// Kernels with one fault each, for the simulator alone. The line that a finding must name is told
// apart by a comment with the fault's name, which the test looks up in this file.

namespace tetrion::cuda {

inline constexpr unsigned kEveryLane = 0xFFFFFFFFU;

// As BlockSums of the good kernels, without the barrier between writing and reading.
__global__ void MissingBarrier(DeviceSpan<std::int32_t> out) {
  TETRION_SHARED(std::int32_t, values, 64);
  if (threadIdx.x < 64) values[threadIdx.x] = 1;
  // Here a barrier is missing.
  out[threadIdx.x] = values[63 - threadIdx.x];  // never written
}

// The same fault behind a first round: what is read was written, in the round before.
__global__ void MissingSecondBarrier(DeviceSpan<std::int32_t> out) {
  TETRION_SHARED(std::int32_t, values, 64);
  values[threadIdx.x] = 1;
  __syncthreads();
  values[threadIdx.x] = 2;
  // Here a barrier is missing.
  out[threadIdx.x] = values[63 - threadIdx.x];
}

__global__ void DivergentBarriers() {
  if (threadIdx.x < 10) {
    __syncthreads();  // divergent
  } else {
    __syncthreads();  // divergent, the other
  }
}

__global__ void ReturnsBeforeBarrier() {
  if (threadIdx.x == 5) return;
  __syncthreads();  // returned
}

__global__ void MaskNamesReturnedLane(DeviceSpan<std::int32_t> out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_down_sync(kEveryLane, 1, 1);  // ended lane
}

__global__ void MaskNamesMissingLane() {
  __syncwarp(kEveryLane);  // missing lane, in a block of 16
}

__global__ void CallsOutsideItsMask() {
  __syncwarp(0x0000FFFFU);  // leaves itself out
}

__global__ void ReadsOutsideTheMask(DeviceSpan<std::int32_t> out) {
  if (threadIdx.x < 16) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x);
    out[threadIdx.x] = __shfl_sync(0x0000FFFFU, lane, 16);  // reads outside
  }
}

__global__ void DifferentWarpCalls() {
  if (threadIdx.x % 2 == 0) {
    __syncwarp(kEveryLane);  // warp call
  } else {
    (void)__any_sync(kEveryLane, 1);  // warp call, the other
  }
}

__global__ void ReadsSharedNeverWritten(DeviceSpan<std::int32_t> out) {
  auto shared = SharedBytes<std::int32_t>();
  if (threadIdx.x != 7) shared[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = shared[threadIdx.x];  // unwritten
}

__global__ void CountsFromNothing() {
  TETRION_SHARED(std::uint32_t, count, 1);
  atomicAdd(&count[0], 1U);  // unwritten count
}

__global__ void IndexPastTheEnd(DeviceSpan<std::int32_t> out) {
  out[threadIdx.x + 1] = 1;  // past the end
}

__global__ void NegativeIndex(DeviceSpan<std::int32_t> out) {
  out[static_cast<int>(threadIdx.x) - 1] = 1;  // negative
}

__global__ void DivergentVotes() {
  if (threadIdx.x < 10) {
    (void)__syncthreads_or(1);  // divergent vote
  } else {
    (void)__syncthreads_count(1);  // divergent vote, the other
  }
}

__global__ void SharedIndexPastTheEnd() {
  TETRION_SHARED(std::int32_t, values, 16);
  values[threadIdx.x] = 1;  // shared end
}

__global__ void RawWritePastTheEnd(std::int32_t* out, int n) {
  if (threadIdx.x == 0) out[n] = 1;
}

__global__ void RawWriteFarPastTheEnd(std::int32_t* out, int n) {
  if (threadIdx.x == 0) out[n + 1024] = 1;
}

// Half of the warp waits for the other half, which waits for the whole block.
__global__ void Deadlock() {
  if (threadIdx.x < 16) {
    __syncwarp(kEveryLane);  // waits for the rest
  } else {
    __syncthreads();  // waits for the warp
  }
}

}  // namespace tetrion::cuda
