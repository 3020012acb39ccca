#pragma once

#include <cstdint>

namespace tetrion::bench {

// f32 operations of one core that does nothing but fused multiply-adds of full vectors, in so many
// chains of results that none waits for another: the vector unit's bound. (A matrix unit, where
// there is one, may exceed it.)

typedef float Vec8 __attribute__((vector_size(32)));
typedef float Vec16 __attribute__((vector_size(64)));

constexpr std::int64_t kPeakRounds = 4096;

// `kChains` results in registers; returns their sum, so that none is left out.
template <typename Vec, int kChains>
__attribute__((always_inline)) inline float FmaChains(float factor) {
  Vec sum[kChains];  // each from another start: the compiler would compute equal ones once
  for (int chain = 0; chain < kChains; ++chain) {
    sum[chain] = Vec{} + factor * static_cast<float>(chain);
  }
  const Vec by = Vec{} + factor, more = Vec{} + 1.0F;
  for (std::int64_t round = 0; round < kPeakRounds; ++round) {
#pragma GCC unroll 24
    for (int chain = 0; chain < kChains; ++chain) sum[chain] = sum[chain] * by + more;
  }
  float all = 0;
  for (const Vec& one : sum) all += one[0];
  return all;
}
template <typename Vec, int kChains>
constexpr double FmaChainsFlops() {
  return 2.0 * kPeakRounds * kChains * (sizeof(Vec) / sizeof(float));
}

__attribute__((target("avx512f"), noinline)) inline float FmaChains512(float factor) {
  return FmaChains<Vec16, 24>(factor);
}
__attribute__((noinline)) inline float FmaChains256(float factor) {
  return FmaChains<Vec8, 12>(factor);
}

// One piece of work of the widest vectors that this processor has; returns its operations.
inline double FmaPiece() {
  static volatile float kept = 0.5F;  // neither known to the compiler nor unused
  if (__builtin_cpu_supports("avx512f")) {
    kept = FmaChains512(kept > 0.25F ? 0.5F : 0.25F);
    return FmaChainsFlops<Vec16, 24>();
  }
  kept = FmaChains256(kept > 0.25F ? 0.5F : 0.25F);
  return FmaChainsFlops<Vec8, 12>();
}

}  // namespace tetrion::bench
