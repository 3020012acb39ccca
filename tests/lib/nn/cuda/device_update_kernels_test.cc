#include "lib/nn/cuda/device_update_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/nn/dreamer/draw_one_hots.h"
#include "lib/nn/dreamer/norm_silu.h"
#include "lib/nn/dreamer/step_kernels.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/nn/test_envs.h"

// The device's kernels against their twins on the CPU.
namespace tetrion {
namespace {

using Floats = std::vector<float>;

class DeviceUpdateKernelsTest : public cuda::DeviceFixture {
 protected:
  cuda::DeviceBuffer Room(std::size_t floats) { return Upload(Floats(floats, std::nanf(""))); }
};

Floats Noise(std::int64_t count, std::uint64_t seed) {
  return testing::Noise(static_cast<std::size_t>(count), seed);
}

void ExpectNear(const Floats& device, const Floats& host, double error, const char* what) {
  ASSERT_EQ(device.size(), host.size()) << what;
  for (std::size_t i = 0; i < host.size(); ++i) {
    ASSERT_NEAR(device[i], host[i], error) << what << " " << i;
  }
}

// Widths and row counts that fill a block's parts, and that do not.
struct Rows {
  std::int64_t rows, width;
};
constexpr Rows kRows[] = {{1, 1}, {3, 64}, {8, 128}, {19, 200}};

TEST_F(DeviceUpdateKernelsTest, NormAndActivationEqualTheirTwin) {
  DeviceUpdateKernels kernels(*stream);
  for (const auto [rows, width] : kRows) {
    const std::int64_t n = rows * width;
    const Floats x = Noise(n, 1), scale = Noise(width, 2), grad = Noise(n, 3);
    Floats y(x.size()), slope(y), inverse(static_cast<std::size_t>(rows)), grad_x(y),
        grad_scale(scale.size(), 0.0F);
    NormSiluForward(x.data(), rows, width, scale.data(), y.data(), slope.data(), inverse.data());
    NormSiluBackward(grad.data(), x.data(), rows, width, scale.data(), slope.data(), inverse.data(),
                     grad_x.data(), grad_scale.data());
    const auto parts = static_cast<std::size_t>(NormSiluParts(rows));
    const cuda::DeviceBuffer in = Upload(x), by = Upload(scale), g = Upload(grad),
                             out = Room(y.size()), bent = Room(y.size()),
                             of_row = Room(inverse.size()), back = Room(y.size()),
                             back_scale = Room(parts * scale.size());
    kernels.NormSiluForward(in.data<float>(), rows, width, by.data<float>(), out.data<float>(),
                            bent.data<float>(), of_row.data<float>());
    kernels.NormSiluBackward(g.data<float>(), in.data<float>(), rows, width, by.data<float>(),
                             bent.data<float>(), of_row.data<float>(), back.data<float>(),
                             back_scale.data<float>());
    ExpectNear(Download<float>(out), y, 2e-6, "y");
    ExpectNear(Download<float>(bent), slope, 2e-6, "slope");
    ExpectNear(Download<float>(of_row), inverse, 1e-5 * inverse[0], "inverse");
    ExpectNear(Download<float>(back), grad_x, 2e-5, "grad x");
    const Floats of_parts = Download<float>(back_scale);
    Floats sum(scale.size(), 0.0F);
    for (std::size_t i = 0; i < of_parts.size(); ++i) sum[i % sum.size()] += of_parts[i];
    ExpectNear(sum, grad_scale, 2e-5, "grad scale");
  }
}

TEST_F(DeviceUpdateKernelsTest, ANormWithoutGradientNeedsNoSlope) {
  DeviceUpdateKernels kernels(*stream);
  constexpr std::int64_t kCount = 10, kWidth = 33;
  const Floats x = Noise(kCount * kWidth, 1), scale = Noise(kWidth, 2);
  Floats y(x.size()), inverse(kCount);
  NormSiluForward(x.data(), kCount, kWidth, scale.data(), y.data(), nullptr, inverse.data());
  const cuda::DeviceBuffer in = Upload(x), by = Upload(scale), out = Room(x.size()),
                           of_row = Room(kCount);
  kernels.NormSiluForward(in.data<float>(), kCount, kWidth, by.data<float>(), out.data<float>(),
                          nullptr, of_row.data<float>());
  ExpectNear(Download<float>(out), y, 2e-6, "y");
}

TEST_F(DeviceUpdateKernelsTest, GatesEqualTheirTwin) {
  DeviceUpdateKernels kernels(*stream);
  for (const auto [rows, width] : kRows) {
    const std::int64_t n = rows * width;
    const Floats gates = Noise(3 * n, 1), deter = Noise(n, 2), grad = Noise(n, 3);
    Floats out(deter.size()), parts(gates.size()), grad_gates(gates.size()), grad_deter(out);
    GruForward(gates.data(), deter.data(), rows, width, out.data(), parts.data());
    GruBackward(grad.data(), gates.data(), deter.data(), parts.data(), rows, width,
                grad_gates.data(), grad_deter.data());
    const cuda::DeviceBuffer in = Upload(gates), old = Upload(deter), g = Upload(grad),
                             next = Room(out.size()), kept = Room(parts.size()),
                             back = Room(parts.size()), back_deter = Room(out.size());
    kernels.GruForward(in.data<float>(), old.data<float>(), rows, width, next.data<float>(),
                       kept.data<float>());
    kernels.GruBackward(g.data<float>(), in.data<float>(), old.data<float>(), kept.data<float>(),
                        rows, width, back.data<float>(), back_deter.data<float>());
    ExpectNear(Download<float>(next), out, 2e-6, "deter");
    ExpectNear(Download<float>(kept), parts, 2e-6, "parts");
    ExpectNear(Download<float>(back), grad_gates, 5e-6, "grad gates");
    ExpectNear(Download<float>(back_deter), grad_deter, 5e-6, "grad deter");
  }
}

TEST_F(DeviceUpdateKernelsTest, DrawsAreThoseOfTheHost) {
  DeviceUpdateKernels kernels(*stream);
  constexpr std::int64_t kUpdates = 12;
  constexpr std::uint32_t kFirst = 5, kClasses = 6, kDrawn = 131;
  Floats probs = Noise(kDrawn * kClasses, 4);
  for (float& p : probs) p = p * p;
  for (std::size_t row = 0; row < kDrawn; ++row) {
    float sum = 0;
    for (std::size_t c = 0; c < kClasses; ++c) sum += probs[row * kClasses + c];
    for (std::size_t c = 0; c < kClasses; ++c) probs[row * kClasses + c] /= sum;
  }
  probs[7 * kClasses] = std::numeric_limits<float>::quiet_NaN();
  Floats expected(probs.size(), 0.0F);
  for (std::uint32_t row = 0; row < kDrawn; ++row) {
    const PhiloxBlock words = UpdateWords(3, kUpdates, kFirst + row / kRowsOfADraw);
    const std::size_t at = std::size_t{row} * kClasses;
    expected[at + DrawClass(&probs[at], kClasses, words.word[row % kRowsOfADraw])] = 1.0F;
  }
  const cuda::DeviceBuffer in = Upload(probs), out = Room(probs.size()),
                           updates = Upload(std::vector<std::int64_t>{kUpdates});
  kernels.DrawOneHots(in.data<float>(), kDrawn, kClasses,
                      {.seed = 3, .updates = updates.data<std::int64_t>(), .first_block = kFirst},
                      out.data<float>());
  EXPECT_EQ(Download<float>(out), expected);
}

}  // namespace
}  // namespace tetrion
