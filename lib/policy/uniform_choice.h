#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"

namespace tetrion {

// A choice in which all legal actions are equally likely; where none is legal, action 0 with
// log-probability 0. The same for the CPU's policies and the kernels of a device.
struct UniformChoice {
  std::int32_t action = 0;
  float log_prob = 0.0F;
};

inline constexpr std::int32_t kMostMaskedActions = 64;

// Bits of the actions 0..count-1; all bits from 64 actions on.
TETRION_HOST_DEVICE inline std::uint64_t MaskOfAll(std::int32_t count) {
  return count < kMostMaskedActions ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
}

TETRION_HOST_DEVICE inline std::uint32_t BitsSet(std::uint64_t mask) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(mask));
#else
  return static_cast<std::uint32_t>(std::popcount(mask));
#endif
}

// One of the actions 0..count-1, by 32 random bits.
TETRION_HOST_DEVICE inline UniformChoice UniformOfAll(std::uint32_t count, std::uint32_t word) {
  return {static_cast<std::int32_t>(BoundedDraw(word, count)),
          -std::log(static_cast<float>(count))};
}

// One of the actions whose bit is set, by 32 random bits.
TETRION_HOST_DEVICE inline UniformChoice UniformOfMask(std::uint64_t mask, std::uint32_t word) {
  const std::uint32_t legal = BitsSet(mask);
  if (legal == 0) return {};
  const UniformChoice pick = UniformOfAll(legal, word);
  for (std::int32_t i = 0; i < pick.action; ++i) mask &= mask - 1;
  // Bits below the lowest one set.
  return {static_cast<std::int32_t>(BitsSet((mask & -mask) - 1)), pick.log_prob};
}

}  // namespace tetrion
