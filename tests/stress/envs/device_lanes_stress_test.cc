#include <gtest/gtest.h>

#include "lib/envs/cuda/device_lanes.h"
#include "tests/lib/envs/cuda/same_play.cuh"

// As tests/lib/envs/cuda/device_lanes_test.cu, for 5e6 steps on the simulated device: every row of
// every lane, every episode and every counter must be the lane loop's. Games run to their ends many
// times, tokens wrap around their queue, episodes around their list.

namespace tetrion {
namespace {

// Of 150,000 steps. A sanitizer sees the same code ten times as slowly.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTurns = 4;
#else
constexpr int kTurns = 33;
#endif

using testing::DeviceLanesOf;
using testing::ExpectSamePlay;

TEST(DeviceLanesStressTest, MillionsOfStepsEqualTheLaneLoops) {
  const cuda::Device device(0);
  for (const char* name : {"cartpole", "tetris", "tetris-placement"}) {
    ExpectSamePlay(device, DeviceLanesOf({.name = name, .lanes = 500, .seed = 17}), kTurns, 100);
  }
}

}  // namespace
}  // namespace tetrion
