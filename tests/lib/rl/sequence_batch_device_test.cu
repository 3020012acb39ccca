#include <gtest/gtest.h>

#include "tests/lib/replay/device_memory.h"
#include "tests/lib/replay/schedules.h"
#include "tests/lib/rl/sequence_batch_suite.h"

// A trainer on the host whose rows lie on a device.
namespace tetrion::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Device, SequenceBatchSuite, DeviceMemory);

// The property: what a batch writes back is in the replay before a row that overwrites one of its
// own, however late the device does either. Only the event that the lease is closed with says so.
TEST(TrainBatchDeviceTest, LatentsThatAreStillOnTheirWayNeverReachTheRowsThatComeAfter) {
  if (const char* why = DeviceMemory::Missing()) GTEST_SKIP() << why;
  ForEachSchedule(200, 50, [](std::uint64_t) {
    SequenceReplay<DeviceMemory> replay;
    std::uint64_t context = kSequenceContext;
    for (int lap = 0; lap < 4; ++lap, context += kSequenceCapacity) {
      {
        TrainBatch batch = replay.Batch(context);
        replay.WriteBack(batch, kSequenceSteps, 1);
      }
      replay.Push(kSequenceCapacity);
      for (std::uint64_t row = 0; row < 3; ++row) {
        EXPECT_EQ(replay.Filled(context + kSequenceCapacity + row, 1).valid, (Bytes{0, 0}))
            << "lap " << lap << ", row " << row;
      }
    }
  });
}

}  // namespace tetrion::testing
