#include "lib/cuda/host_copy_guard.h"

#include <gmock/gmock.h>

#include <cstdint>

#include "lib/core/error.h"
#include "lib/cuda/activity.h"
#include "lib/cuda/launch.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

__global__ void FillOnes(DeviceSpan<std::int32_t> out) {
  out[threadIdx.x] = 1;
}

// Negative controls: what may be done goes unreported. Positive controls: one copy of 4 bytes, of
// any direction, kind and purpose, is found, and so is one wait.
class HostCopyGuardTest : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    if (IsSkipped()) return;
    values = DeviceBuffer(*device, 256, "values");
    pinned = PinnedBuffer(256, "pinned");
  }
  // What the watched path does without the host.
  void Work() {
    Launch(*stream, FillOnes, 1, 64, 0, DeviceSpan<std::int32_t>(values.data<std::int32_t>(), 64));
    CopyOnDevice(values.data<char>() + 128, values.data<char>(), 128, CopyPurpose::kIngest,
                 *stream);
  }

  DeviceBuffer values;
  PinnedBuffer pinned;
};

TEST_F(HostCopyGuardTest, KernelsAndCopiesOnTheDeviceAreFine) {
  const HostCopyGuard guard;
  Work();
  EXPECT_THAT(guard.Violations(), IsEmpty());
  EXPECT_EQ(guard.Seen().launches, 1U);
  EXPECT_EQ(
      guard.Seen().Of(CopyDirection::kOnDevice, MemoryKind::kDevice, CopyPurpose::kIngest).bytes,
      128U);
}

TEST_F(HostCopyGuardTest, FindsOneCopyOfFourBytes) {
  std::int32_t pageable = 0;
  const auto violations = [&](const auto& copy) {
    const HostCopyGuard guard;
    Work();
    copy();
    return guard.Violations();
  };
  EXPECT_THAT(violations([&] {
                CopyToDevice(values.data<char>(), pinned.data<char>(), 4, CopyPurpose::kIngest,
                             *stream);
              }),
              ElementsAre("1 copies of pinned memory host to device for ingest, 4 bytes where 0 "
                          "are allowed"));
  EXPECT_THAT(violations([&] {
                CopyToDevice(values.data<char>(), &pageable, 4, CopyPurpose::kSetUp, *stream);
              }),
              ElementsAre(HasSubstr("pageable memory host to device for set-up")));
  EXPECT_THAT(violations([&] {
                CopyToHost(pinned.data<char>(), values.data<char>(), 4, CopyPurpose::kAccount,
                           *stream);
              }),
              ElementsAre(HasSubstr("pinned memory device to host for account")));
  EXPECT_THAT(violations([&] {
                CopyToHost(&pageable, values.data<char>(), 4, CopyPurpose::kWeights, *stream);
              }),
              ElementsAre(HasSubstr("pageable memory device to host for weights")));
}

TEST_F(HostCopyGuardTest, WorkThatIsRefusedIsNotCounted) {
  const HostCopyGuard guard;
  const DeviceSpan<std::int32_t> span(values.data<std::int32_t>(), 64);
  EXPECT_THROW(Launch(*stream, FillOnes, 1, 2048, 0, span), Error);
  EXPECT_EQ(guard.Seen().launches, 0U);
}

TEST_F(HostCopyGuardTest, FindsWaitsOfTheHost) {
  Event event(*device);
  const HostCopyGuard guard;
  Work();
  stream->Record(event);
  stream->Wait(event);  // the device's wait costs the host nothing
  EXPECT_THAT(guard.Violations(), IsEmpty());
  stream->Synchronize();
  event.Synchronize();
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("the host waited 2 times")));
}

TEST_F(HostCopyGuardTest, ARegionWithoutKernelsProvesNothing) {
  const HostCopyGuard guard;
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("no kernel was launched")));
}

TEST_F(HostCopyGuardTest, AllowedCopiesAreCountedToTheByte) {
  const AllowedCopies allowed[] = {
      {CopyDirection::kHostToDevice, MemoryKind::kPinned, CopyPurpose::kIngest, 8}};
  const HostCopyGuard guard;
  Work();
  const auto copy = [&] {
    CopyToDevice(values.data<char>(), pinned.data<char>(), 4, CopyPurpose::kIngest, *stream);
  };
  copy();
  EXPECT_THAT(guard.Violations(allowed), ElementsAre(HasSubstr("4 bytes where 8 are allowed")));
  copy();
  EXPECT_THAT(guard.Violations(allowed), IsEmpty());
  copy();
  EXPECT_THAT(guard.Violations(allowed), ElementsAre(HasSubstr("12 bytes where 8 are allowed")));
}

TEST_F(HostCopyGuardTest, EveryLaunchOfAGraphCounts) {
  Capture capture(*stream);
  Work();
  CopyToDevice(values.data<char>(), pinned.data<char>(), 4, CopyPurpose::kIngest, *stream);
  const Graph graph = capture.End();
  const HostCopyGuard guard;
  EXPECT_EQ(guard.Seen().launches, 0U) << "recorded, not done";
  stream->Launch(graph);
  stream->Launch(graph);
  EXPECT_EQ(guard.Seen().launches, 2U);
  EXPECT_THAT(guard.Violations(), ElementsAre(HasSubstr("2 copies of pinned memory")));
}

}  // namespace
}  // namespace tetrion::cuda
