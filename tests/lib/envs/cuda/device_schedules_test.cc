#include <gtest/gtest.h>

#include "lib/envs/cuda/device_lanes.h"
#include "tests/lib/envs/cuda/same_play.cuh"
#include "tests/support/sim_schedules.h"

namespace tetrion {
namespace {

using testing::DeviceLanesOf;
using testing::ExpectSamePlay;
using testing::ForEachSimSchedule;

// Blocks, threads and the parts of copies come in the order of the schedule; what lanes play does
// not.
TEST(DeviceSchedulesTest, RowsAreTheSameInAnyOrderOfBlocksAndThreads) {
  ForEachSimSchedule(25, [] {
    const cuda::Device device(0);
    ExpectSamePlay(device, DeviceLanesOf({.name = "tetris-placement", .lanes = 130, .seed = 1}, 32),
                   3, 12);
  });
}

}  // namespace
}  // namespace tetrion
