#pragma once

#include <math.h>  // NOLINT: the names of the global namespace, as CUDA has them

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

// Bits, numbers and vectors for kernels that run on the CPU. The functions of <math.h> are the C
// library's: a device's differ in the last places, so compare with a tolerance.

// NOLINTBEGIN: the names are CUDA's
inline int __popc(std::uint32_t word) {
  return std::popcount(word);
}
inline int __popcll(unsigned long long word) {
  return std::popcount(word);
}
inline int __clz(std::int32_t word) {
  return std::countl_zero(static_cast<std::uint32_t>(word));
}
inline int __clzll(long long word) {
  return std::countl_zero(static_cast<unsigned long long>(word));
}
inline int __ffs(std::int32_t word) {
  return word == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(word)) + 1;
}
inline int __ffsll(long long word) {
  return word == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(word)) + 1;
}
// Byte i of the result is the byte of (high, low) that the lower three bits of digit i of the
// selector number: nvcc masks the fourth, which the instruction itself would take for the sign's.
inline std::uint32_t __byte_perm(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t digit = selector >> 4 * i & 7U;
    result |= static_cast<std::uint32_t>(bytes >> 8 * digit & 0xFFU) << 8 * i;
  }
  return result;
}
inline std::uint32_t __umulhi(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}

inline float __uint_as_float(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline std::uint32_t __float_as_uint(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
inline float rsqrtf(float value) {
  return 1.0F / sqrtf(value);
}
inline double rsqrt(double value) {
  return 1.0 / sqrt(value);
}
// Of floats the one that is a number, as fminf.
template <typename T>
T min(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmin(a, b);
  return b < a ? b : a;
}
template <typename T>
T max(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return std::fmax(a, b);
  return a < b ? b : a;
}

template <typename T>
T __ldg(const T* at) {
  return *at;
}

// Vectors that a device loads and stores at once, from addresses that are a multiple of their size.
#define TETRION_VECTOR2(name, type)         \
  struct alignas(2 * sizeof(type)) name {   \
    type x, y;                              \
  };                                        \
  inline name make_##name(type x, type y) { \
    return {x, y};                          \
  }
#define TETRION_VECTOR4(name, type)                         \
  struct alignas(4 * sizeof(type)) name {                   \
    type x, y, z, w;                                        \
  };                                                        \
  inline name make_##name(type x, type y, type z, type w) { \
    return {x, y, z, w};                                    \
  }
TETRION_VECTOR4(uchar4, unsigned char)
TETRION_VECTOR2(int2, int)
TETRION_VECTOR4(int4, int)
TETRION_VECTOR2(uint2, unsigned)
TETRION_VECTOR4(uint4, unsigned)
TETRION_VECTOR2(float2, float)
TETRION_VECTOR4(float4, float)
TETRION_VECTOR2(ulonglong2, unsigned long long)
#undef TETRION_VECTOR2
#undef TETRION_VECTOR4
// NOLINTEND
