#include "lib/policy/cuda/not_finite_rows.h"

#include <gtest/gtest.h>

#include "tests/lib/cuda/device_fixture.h"

namespace tetrion {
namespace {

class NotFiniteRowsTest : public cuda::DeviceFixture {};

TEST_F(NotFiniteRowsTest, EachCopyIsTakenOnceAndSaysWhatWasCountedBeforeIt) {
  NotFiniteRows rows(*device);
  EXPECT_FALSE(rows.TakeCheck().has_value());
  for (const unsigned long long counted : {0ULL, 3ULL, 1ULL << 40}) {
    const NotFiniteCount count = {.rows = counted, .last = 9};
    cuda::CopyToDevice(rows.device_count(), &count, sizeof count, cuda::CopyPurpose::kSetUp,
                       *stream);
    rows.EnqueueCheck(*stream);
    stream->Synchronize();
    EXPECT_EQ(rows.TakeCheck(), counted);
    EXPECT_FALSE(rows.TakeCheck().has_value());
  }
}

}  // namespace
}  // namespace tetrion
