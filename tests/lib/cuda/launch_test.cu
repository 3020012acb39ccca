#include "lib/cuda/launch.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "tests/lib/cuda/device_fixture.h"
#include "tests/lib/cuda/good_kernels.cuh"

namespace tetrion::cuda {
namespace {

class LaunchTest : public DeviceFixture {};

template <typename T>
DeviceSpan<T> SpanOf(const DeviceBuffer& buffer) {
  return DeviceSpan<T>(buffer.data<T>(), buffer.bytes() / sizeof(T));
}

std::vector<std::int32_t> Values(std::size_t n) {
  std::vector<std::int32_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::int32_t>(i * 7 % 101);
  return values;
}

TEST_F(LaunchTest, BlocksSumTheirValues) {
  for (const unsigned threads : {32U, 96U, 256U}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{1000}}) {
      const std::vector<std::int32_t> values = Values(n);
      const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
      const DeviceBuffer in = Upload(values);
      const DeviceBuffer out(*device, blocks * sizeof(std::int32_t), "sums");
      Launch(*stream, BlockSums, blocks, threads, 0, SpanOf<const std::int32_t>(in),
             SpanOf<std::int32_t>(out));
      std::vector<std::int32_t> expected(blocks);
      for (std::size_t i = 0; i < n; ++i) expected[i / threads] += values[i];
      EXPECT_EQ(Download<std::int32_t>(out), expected) << threads << " threads, n = " << n;
    }
  }
}

TEST_F(LaunchTest, PrefixSumsUseDynamicSharedMemory) {
  std::vector<std::int32_t> values = Values(128);
  const DeviceBuffer buffer = Upload(values);
  Launch(*stream, PrefixSums<std::int32_t>, 1, 128, 128 * sizeof(std::int32_t),
         SpanOf<std::int32_t>(buffer));
  std::partial_sum(values.begin(), values.end(), values.begin());
  EXPECT_EQ(Download<std::int32_t>(buffer), values);
}

TEST_F(LaunchTest, AtomicsCountAcrossBlocks) {
  std::vector<std::uint8_t> values(5000);
  std::vector<std::uint32_t> expected(256);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * i % 256);
    expected[values[i]] += 1;
  }
  const DeviceBuffer in = Upload(values);
  const DeviceBuffer out(*device, 256 * sizeof(std::uint32_t), "counts");
  SetBytes(out.data<char>(), 0, out.bytes(), *stream);
  Launch(*stream, Histogram, 7, 64, 0, SpanOf<const std::uint8_t>(in), SpanOf<std::uint32_t>(out));
  EXPECT_EQ(Download<std::uint32_t>(out), expected);
}

TEST_F(LaunchTest, LanesSeeEachOther) {
  std::vector<std::int32_t> values = Values(64);
  const DeviceBuffer in = Upload(values);
  const DeviceBuffer out(*device, 64 * sizeof(LaneView), "views");
  Launch(*stream, WarpViews, 1, 64, 0, SpanOf<const std::int32_t>(in), SpanOf<LaneView>(out));
  const std::vector<LaneView> views = Download<LaneView>(out);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t warp = i / 32 * 32, lane = i % 32;
    std::uint32_t odd = 0;
    for (std::size_t l = 0; l < 32; ++l) {
      if (values[warp + l] % 2 == 1) odd |= 1U << l;
    }
    EXPECT_EQ(views[i].odd, odd) << i;
    EXPECT_EQ(views[i].any, 0) << i;
    EXPECT_EQ(views[i].all, 1) << i;
    EXPECT_EQ(views[i].from, values[warp + lane / 8 * 8 + 3]) << i;
    EXPECT_EQ(views[i].up, values[lane % 16 < 2 ? i : i - 2]) << i;
    EXPECT_EQ(views[i].down, values[lane + 5 < 32 ? i + 5 : i]) << i;
    EXPECT_EQ(views[i].across, values[i ^ 4]) << i;
  }
}

TEST_F(LaunchTest, GridsAndBlocksHaveThreeExtents) {
  const DeviceBuffer out(*device, 3 * 4 * 5 * 2 * sizeof(std::int32_t), "values");
  Launch(*stream, FillFrom, {3, 5}, {4, 2}, 0, 10, SpanOf<std::int32_t>(out));
  const std::vector<std::int32_t> values = Download<std::int32_t>(out);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], 10 + static_cast<std::int32_t>(i)) << i;
  }
}

TEST_F(LaunchTest, GraphsReplayKernelsWithTheArgumentsOfTheRecording) {
  const DeviceBuffer out(*device, 64 * sizeof(std::int32_t), "values");
  std::int32_t first = 5;
  Capture capture(*stream);
  Launch(*stream, FillFrom, 1, 64, 0, first, SpanOf<std::int32_t>(out));
  const Graph graph = capture.End();
  first = 6;
  for (int i = 0; i < 2; ++i) {
    SetBytes(out.data<char>(), 0, out.bytes(), *stream);
    stream->Launch(graph);
    EXPECT_EQ(Download<std::int32_t>(out)[63], 68);
  }
}

// 12 KB are under what a kernel has unasked, and over it with the kernel's own; the second launch
// asks for less than the first.
TEST_F(LaunchTest, SharedMemoryIsTheKernelsOwnAndTheLaunchs) {
  for (const std::size_t dynamic_bytes : {std::size_t{96} * 1024, std::size_t{12} * 1024}) {
    std::vector<std::int32_t> expected(10240 + dynamic_bytes / sizeof(std::int32_t));
    std::iota(expected.begin(), expected.end(), 0);
    const DeviceBuffer out(*device, expected.size() * sizeof(std::int32_t), "values");
    Launch(*stream, FillThroughShared, 1, 64, dynamic_bytes, SpanOf<std::int32_t>(out));
    EXPECT_EQ(Download<std::int32_t>(out), expected);
  }
}

TEST_F(LaunchTest, RefusesAShapeThatNoDeviceRuns) {
  const DeviceBuffer out(*device, 4, "values");
  try {
    Launch(*stream, FillFrom, 1, 2048, 0, 1, SpanOf<std::int32_t>(out));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kInternal) << "is no fault of the device";
  }
  EXPECT_THROW(Launch(*stream, FillFrom, 1, 32, 1 << 20, 1, SpanOf<std::int32_t>(out)), Error);
}

}  // namespace
}  // namespace tetrion::cuda
