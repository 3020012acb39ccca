#pragma once

#include <bit>
#include <cstdint>

namespace tetrion {

// e^x by 2^n * 2^f with a degree-6 polynomial on |f| <= 1/2, relative error below 3e-7 for |x| <=
// 80, beyond which x is clamped; NaN stays NaN. Without branches or calls, so that a compiler turns
// a loop over it into vectors.
inline float FastExp(float x) {
  constexpr float kLimit = 80.0F;
  constexpr float kShifter = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  x = x > kLimit ? kLimit : x;
  x = x < -kLimit ? -kLimit : x;
  const float shifted = x * 1.44269504F + kShifter;
  const float n = shifted - kShifter;
  float f = x - n * 0.693359375F;  // ln 2 in two parts: the first product is exact
  f = f + n * 2.12194440e-4F;
  float p = 1.0F / 720.0F;
  p = p * f + 1.0F / 120.0F;
  p = p * f + 1.0F / 24.0F;
  p = p * f + 1.0F / 6.0F;
  p = p * f + 0.5F;
  p = p * f + 1.0F;
  p = p * f + 1.0F;
  // The low bits of `shifted` are n; shifting them to the exponent drops the rest.
  return p * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + 127) << 23);
}

inline float FastSigmoid(float x) {
  return 1.0F / (1.0F + FastExp(-x));
}

inline float FastTanh(float x) {
  return 1.0F - 2.0F / (1.0F + FastExp(2.0F * x));
}

}  // namespace tetrion
