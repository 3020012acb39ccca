// Vectors of TETRION_LANES floats: a part of dense_kernels_impl.h, whose first lines hold here too.

#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tetrion {
namespace {

constexpr std::int64_t kLanes = TETRION_LANES;       // floats of a vector
constexpr int kVectors = TETRION_VECTORS;            // vectors of a column panel
constexpr std::int64_t kPanel = kLanes * kVectors;   // columns kept in registers
constexpr int kAccumulators = TETRION_ACCUMULATORS;  // vectors of a block of results

typedef float Vec __attribute__((vector_size(TETRION_LANES * 4), aligned(4), may_alias));
typedef std::int32_t IntVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef std::uint32_t BitsVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef float AlignedVec __attribute__((vector_size(TETRION_LANES * 4)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));
typedef float LooseEight __attribute__((vector_size(32), aligned(4), may_alias));

inline AlignedVec Load(const float* p) {
  return *reinterpret_cast<const Vec*>(p);
}
inline void Store(float* p, AlignedVec v) {
  *reinterpret_cast<Vec*>(p) = v;
}
inline AlignedVec Splat(float value) {
  return value - AlignedVec{};  // what adding 0 would not be: a plain copy
}

constexpr float kPerLn2 = 1.44269504F;  // 1 / ln 2

#ifndef __AVX512F__
constexpr float kShifter = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer

// x, at least -80 and at most 80; NaN stays NaN.
inline AlignedVec Within80(AlignedVec x) {
  const auto most = reinterpret_cast<__m256>(Splat(80.0F));
  const auto least = reinterpret_cast<__m256>(Splat(-80.0F));
  const __m256 low = _mm256_min_ps(most, reinterpret_cast<__m256>(x));
  return reinterpret_cast<AlignedVec>(_mm256_max_ps(least, low));
}
#endif

// 2^n and what is left of x / ln 2, so that e^x = 2^n 2^f with |f| <= 1/2. NaN stays NaN in both.
struct Split {
  AlignedVec n, f;
};

inline Split SplitPower(AlignedVec x) {
#ifdef __AVX512F__
  auto t = reinterpret_cast<__m512>(x * kPerLn2);
  // What is subtracted below gives a whole number; contracted with the product it would not.
  asm("" : "+v"(t));
  const __m512 f = _mm512_maskz_reduce_ps(0xFFFF, t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return {reinterpret_cast<AlignedVec>(_mm512_maskz_sub_ps(0xFFFF, t, f)),
          reinterpret_cast<AlignedVec>(f)};
#else
  x = Within80(x);
  const AlignedVec n = (x * kPerLn2 + kShifter) - kShifter;
  return {n, x * kPerLn2 - n};
#endif
}

// p * 2^n for whole n.
inline AlignedVec Scaled(AlignedVec p, AlignedVec n) {
#ifdef __AVX512F__
  return reinterpret_cast<AlignedVec>(
      _mm512_maskz_scalef_ps(0xFFFF, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(n)));
#else
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  return p * reinterpret_cast<AlignedVec>(exponent);
#endif
}

// 2^f for |f| <= 1/2: the polynomial of degree 5 whose largest relative error is least (by
// reweighted least squares, 2^0 kept exact).
inline AlignedVec PowerOfTwo(AlignedVec f) {
  AlignedVec p = Splat(0.00132645917F);
  p = p * f + 0.00967161899F;
  p = p * f + 0.0555073501F;
  p = p * f + 0.240222404F;
  p = p * f + 0.69314698F;
  return p * f + 1.0F;
}

// e^x, off by 5e-7 + 8e-8 |x| of it for |x| <= 80. Beyond that AVX-512 goes on to 0 and infinity;
// the baseline stays at e^-80 and e^80.
inline AlignedVec Exp(AlignedVec x) {
  const auto [n, f] = SplitPower(x);
  return Scaled(PowerOfTwo(f), n);
}

// Exp(-x), but of NaN it may be any number.
inline AlignedVec ExpOfMinus(AlignedVec x) {
#ifdef __AVX512F__
  return Exp(-x);
#else
  x = Within80(x);
  // 1.5 * 2^23 has no bit that survives << 23, so what is left is n in the exponent's place; with
  // |n| <= 116 the exponent of p cannot overflow.
  const AlignedVec shifted = x * -kPerLn2 + kShifter;
  const AlignedVec p = PowerOfTwo(x * -kPerLn2 - (shifted - kShifter));
  return reinterpret_cast<AlignedVec>(reinterpret_cast<BitsVec>(p) +
                                      (reinterpret_cast<BitsVec>(shifted) << 23));
#endif
}

// One number of a vector's floats, by op(a, b) of vectors of any size, halves first.
template <typename Op>
inline float Folded(AlignedVec v, const Op& op) {
#ifdef __AVX512F__
  const Eight eight = op(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                         __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#else
  const Eight eight = v;
#endif
  const Four four = op(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),
                       __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
  const Four two = op(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  return op(two, __builtin_shufflevector(two, two, 1, 1, 1, 1))[0];
}

template <typename V>
inline V Greater(V a, V b) {
  return a > b ? a : b;
}
inline float Sum(AlignedVec v) {
  return Folded(v, [](auto a, auto b) { return a + b; });
}

// All floats of a vector, in the place of a Part: a processor without masks for its vectors takes
// many times as long to store in part.
struct Whole {
  AlignedVec Load(const float* p) const { return tetrion::Load(p); }
  void Store(float* p, AlignedVec v) const { tetrion::Store(p, v); }
};

// The first `count` floats of a vector, 1..kLanes of them; the others are neither read nor written.
struct Part {
  explicit Part(std::int64_t count) : count(count) {
#ifdef __AVX512F__
    mask = static_cast<__mmask16>((1U << count) - 1U);
#else
    for (std::int64_t i = 0; i < kLanes; ++i) mask[i] = i < count ? -1 : 0;
#endif
  }
  AlignedVec Load(const float* p) const {
#ifdef __AVX512F__
    return reinterpret_cast<AlignedVec>(_mm512_maskz_loadu_ps(mask, p));
#else
    return reinterpret_cast<AlignedVec>(_mm256_maskload_ps(p, reinterpret_cast<__m256i>(mask)));
#endif
  }
  // And `rest` in place of the others.
  AlignedVec LoadOr(const float* p, AlignedVec rest) const {
#ifdef __AVX512F__
    return reinterpret_cast<AlignedVec>(
        _mm512_mask_loadu_ps(reinterpret_cast<__m512>(rest), mask, p));
#else
    return mask != 0 ? Load(p) : rest;
#endif
  }
  void Store(float* p, AlignedVec v) const {
#ifdef __AVX512F__
    _mm512_mask_storeu_ps(p, mask, reinterpret_cast<__m512>(v));
#else
    _mm256_maskstore_ps(p, reinterpret_cast<__m256i>(mask), reinterpret_cast<__m256>(v));
#endif
  }

  std::int64_t count;
#ifdef __AVX512F__
  __mmask16 mask;
#else
  IntVec mask;
#endif
};

}  // namespace
}  // namespace tetrion
