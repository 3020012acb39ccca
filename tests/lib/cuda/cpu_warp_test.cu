#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

// Barriers that vote and operations of a whole warp, on either backend.

namespace tetrion::cuda {
namespace {

struct Votes {
  std::int32_t count, any, none, all, most;
};

__global__ void BlockVotes(DeviceSpan<Votes> out) {
  Votes votes;
  votes.count = __syncthreads_count(threadIdx.x % 3 == 0);
  votes.any = __syncthreads_or(threadIdx.x == 40) != 0;
  votes.none = __syncthreads_or(0) != 0;
  votes.all = __syncthreads_and(7) != 0;
  votes.most = __syncthreads_and(threadIdx.x != 40) != 0;
  out[threadIdx.x] = votes;
}

struct WarpView {
  std::uint32_t same, all_same, not_all_same;
  std::int32_t all, not_all;
  std::int32_t sum, least, most;
  std::uint32_t unsigned_most, both, either, odd;
};

// The first 20 lanes of a warp: a mask of its own for them, which all operations take.
__global__ void WarpViews(DeviceSpan<WarpView> out) {
  if (threadIdx.x >= 20) return;
  constexpr std::uint32_t kMask = (1U << 20) - 1;
  const auto lane = static_cast<std::int32_t>(threadIdx.x);
  const auto word = threadIdx.x;
  WarpView view;
  view.same = __match_any_sync(kMask, lane % 3);
  view.all_same = __match_all_sync(kMask, 2.5, &view.all);
  view.not_all_same = __match_all_sync(kMask, lane / 19, &view.not_all);
  view.sum = __reduce_add_sync(kMask, lane - 5);
  view.least = __reduce_min_sync(kMask, lane - 5);
  view.most = __reduce_max_sync(kMask, lane - 50);
  view.unsigned_most = __reduce_max_sync(kMask, word - 5U);
  view.both = __reduce_and_sync(kMask, word | 64U);
  view.either = __reduce_or_sync(kMask, word);
  view.odd = __reduce_xor_sync(kMask, word);
  out[threadIdx.x] = view;
}

class CpuWarpTest : public DeviceFixture {
 protected:
  template <typename T>
  std::vector<T> RunBlock(void (*kernel)(DeviceSpan<T>), unsigned threads) {
    const DeviceBuffer out(*device, threads * sizeof(T), "views");
    Launch(*stream, kernel, 1, threads, 0, DeviceSpan<T>(out.data<T>(), threads));
    return Download<T>(out);
  }
};

TEST_F(CpuWarpTest, BarriersCountVotes) {
  for (const Votes& votes : RunBlock(BlockVotes, 70)) {
    EXPECT_EQ(votes.count, 24);
    EXPECT_EQ(votes.any, 1);
    EXPECT_EQ(votes.none, 0);
    EXPECT_EQ(votes.all, 1);
    EXPECT_EQ(votes.most, 0);
  }
}

TEST_F(CpuWarpTest, LanesFindTheirLikeAndReduce) {
  const std::vector<WarpView> views = RunBlock(WarpViews, 20);
  for (std::uint32_t lane = 0; lane < 20; ++lane) {
    std::uint32_t same = 0;
    for (std::uint32_t l = lane % 3; l < 20; l += 3) same |= 1U << l;
    EXPECT_EQ(views[lane].same, same) << lane;
    EXPECT_EQ(views[lane].all_same, (1U << 20) - 1);
    EXPECT_NE(views[lane].all, 0);
    EXPECT_EQ(views[lane].not_all_same, 0U);
    EXPECT_EQ(views[lane].not_all, 0);
    EXPECT_EQ(views[lane].sum, 90);
    EXPECT_EQ(views[lane].least, -5);
    EXPECT_EQ(views[lane].most, -31);
    EXPECT_EQ(views[lane].unsigned_most, 0xFFFFFFFFU);
    EXPECT_EQ(views[lane].both, 64U);
    EXPECT_EQ(views[lane].either, 31U);
    EXPECT_EQ(views[lane].odd, 0U);
  }
}

}  // namespace
}  // namespace tetrion::cuda
