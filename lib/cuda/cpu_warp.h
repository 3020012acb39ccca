#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lib/cuda/sim/kernel_calls.h"

// Barriers and warp operations for kernels that run on the CPU. Each knows the line that calls it.

// NOLINTBEGIN: the names are CUDA's
namespace tetrion::cuda::sim {

// The values of 4 or 8 bytes that registers hold, as the simulator moves them.
template <typename T>
std::uint64_t Packed(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8 && sizeof(T) >= 2);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
template <typename T>
T Unpacked(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

template <typename T>
T Shuffle(std::uint32_t mask, T value, unsigned source, CodeLocation where) {
  return Unpacked<T>(WarpExchange(WarpOperation::kShuffle, mask, Packed(value), source, where));
}

// The lane `delta` away in the lane's group of `width`, a power of two; the lane itself where the
// group has no such lane.
unsigned LaneAbove(unsigned delta, int width);
unsigned LaneBelow(unsigned delta, int width);
unsigned LaneAcross(unsigned bits, int width);
unsigned LaneOf(int source, int width);

}  // namespace tetrion::cuda::sim

#define TETRION_HERE ::tetrion::cuda::CodeLocation where = ::tetrion::cuda::CodeLocation::Here()

inline void __syncthreads(TETRION_HERE) {
  tetrion::cuda::sim::BlockBarrier(false, where);
}
inline int __syncthreads_count(int vote, TETRION_HERE) {
  return static_cast<int>(tetrion::cuda::sim::BlockBarrier(vote != 0, where));
}
inline int __syncthreads_or(int vote, TETRION_HERE) {
  return tetrion::cuda::sim::BlockBarrier(vote != 0, where) != 0;
}
inline int __syncthreads_and(int vote, TETRION_HERE) {
  return tetrion::cuda::sim::BlockBarrier(vote == 0, where) == 0;
}
inline void __syncwarp(std::uint32_t mask = ~0U, TETRION_HERE) {
  tetrion::cuda::sim::WarpExchange(tetrion::cuda::sim::WarpOperation::kSync, mask, 0, 0, where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

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

// The lanes of the mask that have the same value.
template <typename T>
std::uint32_t __match_any_sync(std::uint32_t mask, T value, TETRION_HERE) {
  return static_cast<std::uint32_t>(
      tetrion::cuda::sim::WarpExchange(tetrion::cuda::sim::WarpOperation::kMatch, mask,
                                       tetrion::cuda::sim::Packed(value), 0, where));
}
template <typename T>
std::uint32_t __match_all_sync(std::uint32_t mask, T value, int* all, TETRION_HERE) {
  *all = __match_any_sync(mask, value, where) == mask;
  return *all != 0 ? mask : 0;
}

// A reduction gives every lane of the mask the same: of 32-bit integers, as the hardware does.
#define TETRION_REDUCE(name, result)                                                              \
  template <typename T>                                                                           \
  T name(std::uint32_t mask, T value, TETRION_HERE) {                                             \
    static_assert(std::is_integral_v<T> && sizeof(T) == 4);                                       \
    const auto combine = [](std::uint64_t first, std::uint64_t second) {                          \
      const T a = tetrion::cuda::sim::Unpacked<T>(first);                                         \
      const T b = tetrion::cuda::sim::Unpacked<T>(second);                                        \
      return tetrion::cuda::sim::Packed(static_cast<T>(result));                                  \
    };                                                                                            \
    return tetrion::cuda::sim::Unpacked<T>(                                                       \
        tetrion::cuda::sim::WarpReduce(combine, mask, tetrion::cuda::sim::Packed(value), where)); \
  }
TETRION_REDUCE(__reduce_add_sync, static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b))
TETRION_REDUCE(__reduce_min_sync, b < a ? b : a)
TETRION_REDUCE(__reduce_max_sync, a < b ? b : a)
TETRION_REDUCE(__reduce_and_sync, a& b)
TETRION_REDUCE(__reduce_or_sync, a | b)
TETRION_REDUCE(__reduce_xor_sync, a ^ b)
#undef TETRION_REDUCE
#undef TETRION_HERE
// NOLINTEND
