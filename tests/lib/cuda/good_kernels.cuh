#pragma once

#include <cstdint>

#include "lib/cuda/kernel.h"

// Kernels without a fault, for both backends: they use every word of CUDA that the simulator knows.
// Numeric policy: integers, so that sums do not depend on their order.

namespace tetrion::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

// out[block] = sum of the block's values: shuffles within a warp, shared memory between warps. The
// block is whole warps.
__global__ void BlockSums(DeviceSpan<const std::int32_t> values, DeviceSpan<std::int32_t> out) {
  TETRION_SHARED(std::int32_t, sums, 32);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::int32_t sum = i < values.size() ? values[i] : 0;
  for (unsigned delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(kAllLanes, sum, delta);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp != 0) return;
  sum = lane < blockDim.x / 32 ? sums[lane] : 0;
  for (unsigned delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(kAllLanes, sum, delta);
  if (lane == 0) out[blockIdx.x] = sum;
}

// Inclusive prefix sums of one block of whole warps by doubling, in dynamic shared memory.
template <typename T>
__global__ void PrefixSums(DeviceSpan<T> values) {
  auto shared = SharedBytes<T>();
  const unsigned i = threadIdx.x;
  shared[i] = values[i];
  __syncthreads();
  for (unsigned step = 1; step < blockDim.x; step *= 2) {
    const T before = i >= step ? shared[i - step] : T{0};
    __syncthreads();
    shared[i] += before;
    __syncthreads();
  }
  values[i] = shared[i];
}

// out[value] += 1 for every value, by way of a count in shared memory.
__global__ void Histogram(DeviceSpan<const std::uint8_t> values, DeviceSpan<std::uint32_t> out) {
  TETRION_SHARED(std::uint32_t, counts, 256);
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < values.size();
       i += gridDim.x * blockDim.x) {
    atomicAdd(&counts[values[i]], 1U);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], counts[i]);
}

// What a warp knows of itself, by lane: the votes of odd values, and neighbours by each shuffle.
struct LaneView {
  std::uint32_t odd;
  std::int32_t any, all, from, up, down, across;
};
__global__ void WarpViews(DeviceSpan<const std::int32_t> values, DeviceSpan<LaneView> out) {
  const unsigned i = threadIdx.x;
  const std::int32_t value = values[i];
  LaneView view;
  view.odd = __ballot_sync(kAllLanes, value % 2);
  view.any = __any_sync(kAllLanes, value > 100);
  view.all = __all_sync(kAllLanes, value >= 0);
  view.from = __shfl_sync(kAllLanes, value, 3, 8);
  view.up = __shfl_up_sync(kAllLanes, value, 2, 16);
  view.down = __shfl_down_sync(kAllLanes, value, 5);
  view.across = __shfl_xor_sync(kAllLanes, value, 4);
  __syncwarp();
  out[i] = view;
}

// out[i] = i, through 40 KB of its own and as much of dynamic shared memory as the launch gives:
// more in sum than a kernel has unasked. One block of 64.
__global__ void FillThroughShared(DeviceSpan<std::int32_t> out) {
  TETRION_SHARED(std::int32_t, own, 10240);
  auto rest = SharedBytes<std::int32_t>();
  const auto count = static_cast<std::int32_t>(out.size());
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count; i += 64) {
    if (i < 10240) {
      own[i] = i;
      out[i] = own[i];
    } else {
      rest[i - 10240] = i;
      out[i] = rest[i - 10240];
    }
  }
}

// Threads of whole warps may return early when no barrier follows; the rest pass on.
__global__ void FillFrom(std::int32_t first, DeviceSpan<std::int32_t> out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned i = y * gridDim.x * blockDim.x + x;
  if (i >= out.size()) return;
  out[i] = first + static_cast<std::int32_t>(i);
}

}  // namespace tetrion::cuda
