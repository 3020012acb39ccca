#include "lib/cuda/stream.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/core/error.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion::cuda {
namespace {

using ::testing::HasSubstr;

class StreamTest : public DeviceFixture {};

TEST_F(StreamTest, NamesItselfAndItsMemory) {
  EXPECT_FALSE(device->name().empty());
  EXPECT_GT(device->Memory().free_bytes, 0U);
  EXPECT_GE(device->Memory().total_bytes, device->Memory().free_bytes);
  EXPECT_THAT(MessageOf([] { Device(Device::Count()); }), HasSubstr("there is no CUDA device"));
}

TEST_F(StreamTest, AnEventNeverRecordedHasPassed) {
  Event event(*device);
  EXPECT_TRUE(event.Passed());
  event.Synchronize();
  stream->Wait(event);
  stream->Synchronize();
  EXPECT_TRUE(stream->Idle());
}

TEST_F(StreamTest, AWaitIsForTheRecordInFrontOfIt) {
  Stream other(*device, "other");
  Event event(*device);
  PinnedBuffer one(4, "one"), two(4, "two"), seen(4, "seen");
  *one.data<std::int32_t>() = 1;
  *two.data<std::int32_t>() = 2;
  DeviceBuffer value(*device, 4, "value");
  CopyToDevice(value.data<char>(), one.data<char>(), 4, CopyPurpose::kIngest, *stream);
  stream->Record(event);
  other.Wait(event);
  CopyToHost(seen.data<char>(), value.data<char>(), 4, CopyPurpose::kAccount, other);
  other.Record(event);  // does not touch the wait above
  stream->Wait(event);
  CopyToDevice(value.data<char>(), two.data<char>(), 4, CopyPurpose::kIngest, *stream);
  stream->Synchronize();
  EXPECT_EQ(*seen.data<std::int32_t>(), 1);
  EXPECT_EQ(Download<std::int32_t>(value), std::vector<std::int32_t>{2});
}

TEST_F(StreamTest, PollingAnEventEnds) {
  std::vector<std::int32_t> values(100000);
  std::iota(values.begin(), values.end(), 1);
  const DeviceBuffer buffer = Upload(values);
  Event event(*device);
  stream->Record(event);
  while (!event.Passed()) {
  }
  while (!stream->Idle()) {
  }
  EXPECT_EQ(Download<std::int32_t>(buffer), values);
}

TEST_F(StreamTest, AGraphIsRecordedOnceAndReplayed) {
  DeviceBuffer from(*device, 8, "from"), to(*device, 8, "to");
  SetBytes(from.data<char>(), 1, 8, *stream);
  SetBytes(to.data<char>(), 9, 8, *stream);
  Capture capture(*stream);
  CopyOnDevice(to.data<char>(), from.data<char>(), 8, CopyPurpose::kIngest, *stream);
  EXPECT_THAT(MessageOf([&] { stream->Synchronize(); }), HasSubstr("during a stream's capture"));
  EXPECT_THAT(MessageOf([&] { stream->Wait(Event(*device)); }), HasSubstr("capture"));
  const Graph graph = capture.End();
  EXPECT_EQ(Download<std::uint8_t>(to), std::vector<std::uint8_t>(8, 9)) << "nothing ran yet";
  for (const int value : {3, 4}) {
    SetBytes(from.data<char>(), value, 8, *stream);
    stream->Launch(graph);
    EXPECT_EQ(Download<std::uint8_t>(to),
              std::vector<std::uint8_t>(8, static_cast<std::uint8_t>(value)));
  }
}

// As a device does; another thread is free to.
TEST_F(StreamTest, ACapturingThreadNeitherAllocatesNorAsksForEvents) {
  Event event(*device);
  const auto refused = HasSubstr("during a capture of the same thread");
  {
    const Capture capture(*stream);
    EXPECT_THAT(MessageOf([&] { (void)event.Passed(); }), refused);
    EXPECT_THAT(MessageOf([&] { event.Synchronize(); }), refused);
    EXPECT_THAT(MessageOf([&] { DeviceBuffer(*device, 4, "values"); }), refused);
    EXPECT_THAT(MessageOf([&] { PinnedBuffer(4, "values"); }), refused);
    std::thread([&] { EXPECT_TRUE(event.Passed()); }).join();
  }
  EXPECT_TRUE(event.Passed());
  EXPECT_EQ(DeviceBuffer(*device, 4, "values").bytes(), 4U);
}

TEST_F(StreamTest, ACaptureThatIsLeftByAnExceptionEnds) {
  DeviceBuffer value(*device, 4, "value");
  SetBytes(value.data<char>(), 1, 4, *stream);
  EXPECT_THAT(MessageOf([&] {
                const Capture capture(*stream);
                SetBytes(value.data<char>(), 2, 4, *stream);
                throw Error(ExitCode::kInternal, "between the two");
              }),
              HasSubstr("between the two"));
  EXPECT_EQ(Download<std::uint8_t>(value), std::vector<std::uint8_t>(4, 1));
  Capture capture(*stream);
  SetBytes(value.data<char>(), 3, 4, *stream);
  stream->Launch(capture.End());
  EXPECT_EQ(Download<std::uint8_t>(value), std::vector<std::uint8_t>(4, 3));
}

// For other libraries; a simulated stream has none.
TEST_F(StreamTest, ItsNativeStreamIsItsOwn) {
  const Stream other(*device, "other");
  const bool simulated = device->name() == "simulated device";
  EXPECT_EQ(stream->native() == nullptr, simulated);
  EXPECT_EQ(stream->native() == other.native(), simulated);
}

}  // namespace
}  // namespace tetrion::cuda
