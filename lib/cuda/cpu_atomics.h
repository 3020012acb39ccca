#pragma once

#include <type_traits>

#include "lib/cuda/cpu_shared.h"

// Atomics for kernels that run on the CPU. One simulated thread runs at a time: they are plain.

// NOLINTBEGIN: the names are CUDA's
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
TETRION_ATOMIC(atomicXor, old ^ value)
TETRION_ATOMIC(atomicExch, value)
#undef TETRION_ATOMIC

template <typename T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}
template <typename T>
T atomicCAS(tetrion::cuda::SharedAddress<T> address, std::type_identity_t<T> expected,
            std::type_identity_t<T> value) {
  tetrion::cuda::sim::CheckSharedRead(address.at, sizeof(T), address.where);
  return atomicCAS(address.at, expected, value);
}
// NOLINTEND
