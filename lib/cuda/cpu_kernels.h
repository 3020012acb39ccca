#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lib/cuda/backend.h"
#include "lib/cuda/cpu_shared.h"

// CUDA's words for kernels that g++ compiles for the simulator. Barriers and warp operations know
// the line that calls them. A kernel that needs another word of CUDA gets it here, with a test.
//
// Thread roles: a kernel runs on the host thread that drives the simulator, under its mutex, one
// simulated thread at a time; so atomics are plain, and the indices are ordinary globals.

// NOLINTBEGIN: the names are CUDA's
#define __global__ inline
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

namespace tetrion::cuda::sim {

// Of the simulated thread that runs now.
struct KernelIndices {
  Dim3 thread, block, block_size, grid_size;
};
extern KernelIndices g_kernel_indices;
void SetKernelIndices(const Dim3& grid_size, const Dim3& block_size, const Dim3& block);
void SetThreadIndex(const Dim3& thread);

// As CUDA: a shuffle moves the values of 4 or 8 bytes that registers hold.
template <typename T>
T Shuffle(std::uint32_t mask, T value, unsigned source, CodeLocation where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8 && sizeof(T) >= 2);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = WarpExchange(WarpOperation::kShuffle, mask, word, source, where);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

// The lane `delta` away in the lane's group of `width`, a power of two; the lane itself where the
// group has no such lane.
unsigned LaneAbove(unsigned delta, int width);
unsigned LaneBelow(unsigned delta, int width);
unsigned LaneAcross(unsigned bits, int width);
unsigned LaneOf(int source, int width);

}  // namespace tetrion::cuda::sim

inline const tetrion::cuda::Dim3& threadIdx = tetrion::cuda::sim::g_kernel_indices.thread;
inline const tetrion::cuda::Dim3& blockIdx = tetrion::cuda::sim::g_kernel_indices.block;
inline const tetrion::cuda::Dim3& blockDim = tetrion::cuda::sim::g_kernel_indices.block_size;
inline const tetrion::cuda::Dim3& gridDim = tetrion::cuda::sim::g_kernel_indices.grid_size;
inline constexpr int warpSize = 32;

#define TETRION_HERE ::tetrion::cuda::CodeLocation where = ::tetrion::cuda::CodeLocation::Here()

inline void __syncthreads(TETRION_HERE) {
  tetrion::cuda::sim::BlockBarrier(where);
}
inline void __syncwarp(std::uint32_t mask = ~0U, TETRION_HERE) {
  tetrion::cuda::sim::WarpExchange(tetrion::cuda::sim::WarpOperation::kSync, mask, 0, 0, where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

inline std::uint32_t __ballot_sync(std::uint32_t mask, int vote, TETRION_HERE) {
  return static_cast<std::uint32_t>(tetrion::cuda::sim::WarpExchange(
      tetrion::cuda::sim::WarpOperation::kBallot, mask, vote != 0, 0, where));
}
inline int __any_sync(std::uint32_t mask, int vote, TETRION_HERE) {
  return __ballot_sync(mask, vote, where) != 0;
}
inline int __all_sync(std::uint32_t mask, int vote, TETRION_HERE) {
  return __ballot_sync(mask, vote, where) == mask;
}
template <typename T>
T __shfl_sync(std::uint32_t mask, T value, int source, int width = 32, TETRION_HERE) {
  const unsigned lane = tetrion::cuda::sim::LaneOf(source, width);
  return tetrion::cuda::sim::Shuffle(mask, value, lane, where);
}
template <typename T>
T __shfl_up_sync(std::uint32_t mask, T value, unsigned delta, int width = 32, TETRION_HERE) {
  const unsigned lane = tetrion::cuda::sim::LaneBelow(delta, width);
  return tetrion::cuda::sim::Shuffle(mask, value, lane, where);
}
template <typename T>
T __shfl_down_sync(std::uint32_t mask, T value, unsigned delta, int width = 32, TETRION_HERE) {
  const unsigned lane = tetrion::cuda::sim::LaneAbove(delta, width);
  return tetrion::cuda::sim::Shuffle(mask, value, lane, where);
}
template <typename T>
T __shfl_xor_sync(std::uint32_t mask, T value, int bits, int width = 32, TETRION_HERE) {
  const unsigned lane = tetrion::cuda::sim::LaneAcross(static_cast<unsigned>(bits), width);
  return tetrion::cuda::sim::Shuffle(mask, value, lane, where);
}

inline int __popc(std::uint32_t word) {
  return std::popcount(word);
}
inline int __clz(std::int32_t word) {
  return std::countl_zero(static_cast<std::uint32_t>(word));
}
inline int __ffs(std::int32_t word) {
  return word == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(word)) + 1;
}
template <typename T>
T __ldg(const T* at) {
  return *at;
}

// An atomic applies `change` to the old value and returns the old one; on T* and &shared[i] alike.
#define TETRION_ATOMIC(name, change)                                               \
  template <typename T>                                                            \
  T name(T* at, std::type_identity_t<T> value) {                                   \
    const T old = *at;                                                             \
    *at = static_cast<T>(change);                                                  \
    return old;                                                                    \
  }                                                                                \
  template <typename T>                                                            \
  T name(tetrion::cuda::SharedAddress<T> address, std::type_identity_t<T> value) { \
    tetrion::cuda::sim::CheckSharedRead(address.at, sizeof(T), address.where);     \
    return name(address.at, value);                                                \
  }
TETRION_ATOMIC(atomicAdd, old + value)
TETRION_ATOMIC(atomicSub, old - value)
TETRION_ATOMIC(atomicMin, value < old ? value : old)
TETRION_ATOMIC(atomicMax, old < value ? value : old)
TETRION_ATOMIC(atomicOr, old | value)
TETRION_ATOMIC(atomicAnd, old& value)
TETRION_ATOMIC(atomicExch, value)
#undef TETRION_ATOMIC
#undef TETRION_HERE
// NOLINTEND
