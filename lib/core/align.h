#pragma once

#include <cstddef>
#include <cstdint>

namespace tetrion {

// Written indices keep two lines to themselves: adjacent-line prefetch pairs 64-byte lines.
inline constexpr std::size_t kCacheLinePairBytes = 128;
inline constexpr std::size_t kColumnAlignBytes = 64;

// Rounds `value` up to a multiple of `alignment`, a power of two.
constexpr std::uint64_t AlignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

constexpr bool IsPowerOfTwo(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

}  // namespace tetrion
