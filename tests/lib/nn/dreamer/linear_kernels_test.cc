#include "lib/nn/dreamer/linear_kernels.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <vector>

#include "tests/lib/nn/test_envs.h"

namespace tetrion {
namespace {

using testing::Noise;

TEST(ForRows, CallsForEveryRowOnceHoweverManyThreadsThereAre) {
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    for (const std::int64_t count : {0, 1, 7, 64, 1001}) {
      std::vector<int> calls(static_cast<std::size_t>(count));
      ForRows(count, 10, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++calls[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(calls, std::vector<int>(calls.size(), 1)) << threads << " threads, " << count;
    }
  }
  omp_set_num_threads(1);
}

TEST(Products, DoNotDependOnTheNumberOfThreads) {
  constexpr std::int64_t kRows = 300, kIn = 70, kOut = 96;
  const auto x = Noise(kRows * kIn, 1), w = Noise(kIn * kOut, 2), y = Noise(kRows * kOut, 3);
  std::vector<float> first, first_slope;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    std::vector<float> out = y, slope = w;
    MultiplyRows(nullptr, x.data(), kIn, kRows, kIn, w.data(), kOut, kOut, out.data(), kOut);
    OuterRows(x.data(), kIn, kRows, kIn, y.data(), kOut, kOut, slope.data(), kOut);
    if (threads == 1) first = out, first_slope = slope;
    EXPECT_EQ(out, first) << threads;
    EXPECT_EQ(slope, first_slope) << threads;
  }
  omp_set_num_threads(1);
}

TEST(SumRows, AddsUpEachColumn) {
  const std::vector<float> y = {1, -2, 3, 4, 5, -6};
  std::vector<float> sum(3);
  SumRows(y.data(), 2, 3, sum.data());
  EXPECT_EQ(sum, (std::vector<float>{5, 3, -3}));
}

}  // namespace
}  // namespace tetrion
