#include "lib/cuda/cpu_kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "tests/support/sim_schedules.h"

// The words of CUDA that launch_test.cu, which a device runs too, does not use.

namespace tetrion::cuda {
namespace {

struct Words {
  std::int32_t ones, zeros, first, no_first, loaded, old, width;
  float half;
  double twice;
  std::uint64_t wide;
  std::array<std::int32_t, 6> after;
};

__global__ void UseWords(DeviceSpan<Words> out, DeviceSpan<std::int32_t> cells) {
  Words words = {};
  words.ones = __popc(0xF0F0U);
  words.zeros = __clz(1);
  words.first = __ffs(8);
  words.no_first = __ffs(0);
  words.loaded = __ldg(&cells[0]);
  words.old = atomicExch(&cells[0], 5);
  words.width = warpSize;
  words.half = __shfl_sync(1U, 0.5F, 0);
  words.twice = __shfl_xor_sync(1U, 2.5, 0);
  words.wide = __shfl_up_sync(1U, ~std::uint64_t{0}, 1);
  atomicSub(&cells[1], 3);
  atomicMin(&cells[2], -7);
  atomicMax(&cells[3], 7);
  atomicOr(&cells[4], 6);
  atomicAnd(&cells[5], 6);
  __threadfence();
  for (unsigned i = 0; i < 6; ++i) words.after[i] = cells[i];
  out[0] = words;
}

TEST(CpuKernelsTest, WordsMeanWhatTheyMeanInCuda) {
  sim::Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer out(device, sizeof(Words), "out"), cells(device, 24, "cells");
  Stream stream(device, "work");
  SetBytes(cells.data<char>(), 0, 24, stream);
  Launch(stream, UseWords, 1, 1, 0, DeviceSpan<Words>(out.data<Words>(), 1),
         DeviceSpan<std::int32_t>(cells.data<std::int32_t>(), 6));
  Words words;
  CopyToHost(&words, out.data<char>(), sizeof words, CopyPurpose::kSetUp, stream);
  EXPECT_EQ(words.ones, 8);
  EXPECT_EQ(words.zeros, 31);
  EXPECT_EQ(words.first, 4);
  EXPECT_EQ(words.no_first, 0);
  EXPECT_EQ(words.loaded, 0);
  EXPECT_EQ(words.old, 0);
  EXPECT_EQ(words.width, 32);
  EXPECT_EQ(words.half, 0.5F);
  EXPECT_EQ(words.twice, 2.5);
  EXPECT_EQ(words.wide, ~std::uint64_t{0});
  EXPECT_EQ(words.after, (std::array<std::int32_t, 6>{5, -3, -7, 7, 6, 0}));
}

__global__ void SharedArithmetic(DeviceSpan<std::int32_t> out) {
  auto whole = SharedBytes<std::int32_t>();
  const auto part = whole.Part(2, 2);
  part[0] = 10;
  part[1] = part[0];
  part[0] += 5;
  part[1] = part[0] = 15;
  part[1] = 10;
  part[0] -= 1;
  part[0] *= 2;
  part[1] |= 5;
  part[1] &= 13;
  part[1] ^= 1;
  out[0] = whole[2];
  out[1] = whole[3];
  out[2] = static_cast<std::int32_t>(whole.size());
}

TEST(CpuKernelsTest, SharedMemoryIsCountedWith) {
  sim::Simulator::Get().Restart({});
  const Device device(0);
  const DeviceBuffer out(device, 12, "out");
  Stream stream(device, "work");
  Launch(stream, SharedArithmetic, 1, 1, 16, DeviceSpan<std::int32_t>(out.data<std::int32_t>(), 3));
  std::array<std::int32_t, 3> values;
  CopyToHost(values.data(), out.data<char>(), 12, CopyPurpose::kSetUp, stream);
  EXPECT_EQ(values, (std::array<std::int32_t, 3>{28, 12, 4}));
}

// On a device `auto v = shared[i];` is a copy; here it would be the place. So nothing can be done
// with it but what the expression does that takes it.
TEST(CpuKernelsTest, APlaceInSharedMemoryCannotBeKept) {
  using Place = SharedReference<int>;
  static_assert(std::is_convertible_v<Place, int> && std::is_assignable_v<Place, int>);
  static_assert(std::is_assignable_v<Place, Place>);
  static_assert(!std::is_convertible_v<Place&, int> && !std::is_assignable_v<Place&, int>);
  static_assert(!std::is_copy_constructible_v<Place> && !std::is_move_constructible_v<Place>);
}

TEST(CpuKernelsTest, AHostIndexPastTheEndIsAnErrorWithItsLine) {
  int values[2] = {1, 2};
  const DeviceSpan<int> span(values, 2);
  EXPECT_EQ(span[1], 2);
  try {
    (void)span[2];
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cpu_kernels_test.cc:"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("index 2 of a span of 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion::cuda
