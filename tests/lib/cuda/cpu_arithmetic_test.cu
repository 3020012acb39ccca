#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

// Bits, numbers and vectors on either backend, compared with the host's.

namespace tetrion::cuda {
namespace {

struct Bits {
  std::int32_t ones, zeros, first, nothing;
  std::uint32_t reversed, middle, masked, high, one;
  float back;
};

__global__ void UseBits(DeviceSpan<Bits> out, unsigned long long word) {
  Bits bits;
  bits.ones = __popcll(word);
  bits.zeros = __clzll(static_cast<long long>(word));
  bits.first = __ffsll(static_cast<long long>(word));
  bits.nothing = __ffsll(0);
  bits.reversed = __byte_perm(0x33221100U, 0x77665544U, 0x0123U);
  bits.middle = __byte_perm(0x33221100U, 0x77665544U, 0x5432U);
  bits.masked = __byte_perm(0x33228100U, 0U, 0x0809U);
  bits.high = __umulhi(0x80000001U, 6U);
  bits.one = __float_as_uint(1.0F);
  bits.back = __uint_as_float(0x40000000U);
  out[0] = bits;
}

__global__ void Floats(DeviceSpan<const float> values, DeviceSpan<float> out) {
  const float v = values[threadIdx.x];
  const std::size_t n = values.size();
  const std::size_t i = threadIdx.x;
  out[i] = sinf(v);
  out[n + i] = cosf(v);
  out[2 * n + i] = tanhf(v);
  out[3 * n + i] = expf(v);
  out[4 * n + i] = logf(v);
  out[5 * n + i] = sqrtf(v);
  out[6 * n + i] = rsqrtf(v);
  out[7 * n + i] = log1pf(v);
  out[8 * n + i] = isfinite(v) ? fminf(v, 1.0F) + fmaxf(v, 2.0F) : -1.0F;
  out[9 * n + i] = min(v, 1.0F) + max(v, 2.0F);
  out[10 * n + i] = fmaf(v, v, 1.0F);
  out[11 * n + i] = isnan(v) ? 1.0F : 0.0F;
}

__global__ void Doubles(DeviceSpan<const double> values, DeviceSpan<double> out) {
  const double v = values[threadIdx.x];
  const std::size_t n = values.size();
  const std::size_t i = threadIdx.x;
  out[i] = sin(v);
  out[n + i] = cos(v);
  out[2 * n + i] = exp(v) + log(v);
  out[3 * n + i] = sqrt(v) + rsqrt(v);
  out[4 * n + i] = fmin(v, 1.0) + max(v, 2.0) + floor(v);
  out[5 * n + i] = static_cast<double>(min(threadIdx.x, 2U) + max(1U, 3U));
}

// 16 bytes at a time, their words turned round, through either way to load them.
__global__ void TurnVectors(DeviceSpan<const uint4> from, DeviceSpan<uint4> to) {
  const unsigned i = threadIdx.x;
  const uint4 v = i % 2 == 0 ? from[i] : __ldg(from.data() + i);
  to[i] = make_uint4(v.w, v.z, v.y, v.x);
}

class CpuArithmeticTest : public DeviceFixture {
 protected:
  template <typename T>
  std::vector<T> Run(void (*kernel)(DeviceSpan<const T>, DeviceSpan<T>),
                     const std::vector<T>& values, std::size_t functions) {
    const DeviceBuffer in = Upload(values);
    const DeviceBuffer out(*device, functions * in.bytes(), "results");
    Launch(*stream, kernel, 1, static_cast<unsigned>(values.size()), 0,
           DeviceSpan<const T>(in.data<T>(), values.size()),
           DeviceSpan<T>(out.data<T>(), functions * values.size()));
    return Download<T>(out);
  }
  // To a few of the last places, or both no number.
  template <typename T>
  static void ExpectNear(T value, T expected, const char* what) {
    if (std::isnan(expected) || std::isinf(expected)) {
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : value == expected) << what;
    } else {
      const T bound = 8 * std::numeric_limits<T>::epsilon() * (1 + std::abs(expected));
      EXPECT_NEAR(value, expected, bound) << what;
    }
  }
};

TEST_F(CpuArithmeticTest, CountsBits) {
  const DeviceBuffer out(*device, sizeof(Bits), "bits");
  Launch(*stream, UseBits, 1, 1, 0, DeviceSpan<Bits>(out.data<Bits>(), 1), 0xF0F0ULL << 32);
  const Bits bits = Download<Bits>(out)[0];
  EXPECT_EQ(bits.ones, 8);
  EXPECT_EQ(bits.zeros, 16);
  EXPECT_EQ(bits.first, 37);
  EXPECT_EQ(bits.nothing, 0);
  EXPECT_EQ(bits.reversed, 0x00112233U);
  EXPECT_EQ(bits.middle, 0x55443322U);
  EXPECT_EQ(bits.masked, 0x00000081U);
  EXPECT_EQ(bits.high, 3U);
  EXPECT_EQ(bits.one, 0x3F800000U);
  EXPECT_EQ(bits.back, 2.0F);
}

TEST_F(CpuArithmeticTest, FloatsAreTheHostsToTheLastPlaces) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0.0F, 0.25F, 1.0F, 2.5F, 20.0F, inf, std::nanf("")};
  const std::vector<float> out = Run<float>(Floats, values, 12);
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float v = values[i];
    ExpectNear(out[i], std::sin(v), "sin");
    ExpectNear(out[n + i], std::cos(v), "cos");
    ExpectNear(out[2 * n + i], std::tanh(v), "tanh");
    ExpectNear(out[3 * n + i], std::exp(v), "exp");
    ExpectNear(out[4 * n + i], std::log(v), "log");
    ExpectNear(out[5 * n + i], std::sqrt(v), "sqrt");
    ExpectNear(out[6 * n + i], 1 / std::sqrt(v), "rsqrt");
    ExpectNear(out[7 * n + i], std::log1p(v), "log1p");
    const float clamped = std::fmin(v, 1.0F) + std::fmax(v, 2.0F);
    ExpectNear(out[8 * n + i], std::isfinite(v) ? clamped : -1.0F, "fmin and fmax");
    ExpectNear(out[9 * n + i], clamped, "min and max");
    ExpectNear(out[10 * n + i], v * v + 1, "fma");
    EXPECT_EQ(out[11 * n + i], std::isnan(v) ? 1.0F : 0.0F);
  }
}

TEST_F(CpuArithmeticTest, DoublesAreTheHostsToTheLastPlaces) {
  const std::vector<double> values = {0.25, 1.0, 2.5, 20.0};
  const std::vector<double> out = Run<double>(Doubles, values, 6);
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double v = values[i];
    ExpectNear(out[i], std::sin(v), "sin");
    ExpectNear(out[n + i], std::cos(v), "cos");
    ExpectNear(out[2 * n + i], std::exp(v) + std::log(v), "exp and log");
    ExpectNear(out[3 * n + i], std::sqrt(v) + 1 / std::sqrt(v), "roots");
    ExpectNear(out[4 * n + i], std::fmin(v, 1.0) + std::fmax(v, 2.0) + std::floor(v), "bounds");
    EXPECT_EQ(out[5 * n + i], (i < 2 ? static_cast<double>(i) : 2.0) + 3.0);
  }
}

TEST_F(CpuArithmeticTest, VectorsMoveAtOnce) {
  std::vector<std::uint32_t> values(32);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i);
  const DeviceBuffer in = Upload(values), out(*device, 128, "turned");
  Launch(*stream, TurnVectors, 1, 8, 0, DeviceSpan<const uint4>(in.data<uint4>(), 8),
         DeviceSpan<uint4>(out.data<uint4>(), 8));
  std::vector<std::uint32_t> expected(32);
  for (std::uint32_t i = 0; i < 32; ++i) expected[i] = i / 4 * 4 + 3 - i % 4;
  EXPECT_EQ(Download<std::uint32_t>(out), expected);
}

}  // namespace
}  // namespace tetrion::cuda
