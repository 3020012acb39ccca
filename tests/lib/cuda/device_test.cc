#include "lib/cuda/device.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>

#include "lib/core/error.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion::cuda {
namespace {

using ::testing::HasSubstr;

class DeviceTest : public DeviceFixture {};

std::vector<std::int32_t> Counting(std::size_t n) {
  std::vector<std::int32_t> values(n);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

template <typename Call>
std::string MessageOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(DeviceTest, NamesItselfAndItsMemory) {
  EXPECT_FALSE(device->name().empty());
  EXPECT_GT(device->Memory().free_bytes, 0U);
  EXPECT_GE(device->Memory().total_bytes, device->Memory().free_bytes);
  EXPECT_THAT(MessageOf([] { Device(Device::Count()); }), HasSubstr("there is no CUDA device"));
}

TEST_F(DeviceTest, BuffersAreAlignedAndMoveOnly) {
  static_assert(!std::is_copy_constructible_v<DeviceBuffer>);
  static_assert(!std::is_copy_constructible_v<PinnedBuffer>);
  for (const std::size_t bytes : {1U, 255U, 256U, 4097U}) {
    DeviceBuffer buffer(*device, bytes, "rows");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data<char>()) % 256, 0U);
    EXPECT_EQ(buffer.bytes(), bytes);
    DeviceBuffer other = std::move(buffer);
    EXPECT_EQ(other.bytes(), bytes);
    EXPECT_EQ(buffer.bytes(), 0U);  // NOLINT: what is left behind is empty
  }
  EXPECT_EQ(DeviceBuffer(*device, 0, "nothing").data<char>(), nullptr);
  EXPECT_EQ(PinnedBuffer(0, "nothing").bytes(), 0U);
}

TEST_F(DeviceTest, TooLittleMemoryIsOneSentence) {
  const std::size_t bytes = device->Memory().total_bytes + 1;
  const std::string message = MessageOf([&] { DeviceBuffer(*device, bytes, "the replay"); });
  EXPECT_THAT(message, HasSubstr("the replay needs " + std::to_string(bytes) + " bytes"));
  EXPECT_THAT(message, HasSubstr("are free"));
}

TEST_F(DeviceTest, CopiesThereAndBack) {
  const std::vector<std::int32_t> values = Counting(1000);
  const DeviceBuffer first = Upload(values);
  DeviceBuffer second(*device, first.bytes(), "a copy");
  CopyOnDevice(second.data<char>(), first.data<char>(), first.bytes(), CopyPurpose::kSetUp,
               *stream);
  EXPECT_EQ(Download<std::int32_t>(second), values);
}

TEST_F(DeviceTest, PinnedMemoryIsReadWhenTheStreamComesToIt) {
  PinnedBuffer pinned(64, "pinned"), back(64, "pinned");
  DeviceBuffer buffer(*device, 64, "values");
  Event copied(*device);
  std::memset(pinned.data<char>(), 1, 64);
  CopyToDevice(buffer.data<char>(), pinned.data<char>(), 64, CopyPurpose::kIngest, *stream);
  stream->Record(copied);
  copied.Synchronize();
  EXPECT_TRUE(copied.Passed());
  std::memset(pinned.data<char>(), 2, 64);
  CopyToHost(back.data<char>(), buffer.data<char>(), 64, CopyPurpose::kAccount, *stream);
  stream->Synchronize();
  EXPECT_EQ(back.data<char>()[63], 1);
}

TEST_F(DeviceTest, PageableMemoryIsReadBeforeTheCallReturns) {
  std::vector<std::int32_t> values = Counting(100);
  const std::vector<std::int32_t> before = values;
  const DeviceBuffer buffer = Upload(values);
  values.assign(values.size(), -1);
  EXPECT_EQ(Download<std::int32_t>(buffer), before);
}

TEST_F(DeviceTest, SetsBytes) {
  DeviceBuffer buffer(*device, 100, "bytes");
  SetBytes(buffer.data<char>(), 7, 100, *stream);
  SetBytes(buffer.data<char>() + 50, 0, 50, *stream);
  std::vector<std::uint8_t> expected(100, 7);
  std::fill(expected.begin() + 50, expected.end(), std::uint8_t{0});
  EXPECT_EQ(Download<std::uint8_t>(buffer), expected);
}

TEST_F(DeviceTest, AnEventNeverRecordedHasPassed) {
  Event event(*device);
  EXPECT_TRUE(event.Passed());
  event.Synchronize();
  stream->Wait(event);
  stream->Synchronize();
  EXPECT_TRUE(stream->Idle());
}

TEST_F(DeviceTest, AWaitIsForTheRecordInFrontOfIt) {
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

TEST_F(DeviceTest, PollingAnEventEnds) {
  const std::vector<std::int32_t> values = Counting(100000);
  const DeviceBuffer buffer = Upload(values);
  Event event(*device);
  stream->Record(event);
  while (!event.Passed()) {
  }
  while (!stream->Idle()) {
  }
  EXPECT_EQ(Download<std::int32_t>(buffer), values);
}

TEST_F(DeviceTest, AGraphIsRecordedOnceAndReplayed) {
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
TEST_F(DeviceTest, ACapturingThreadNeitherAllocatesNorAsksForEvents) {
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

TEST_F(DeviceTest, ACaptureThatIsLeftByAnExceptionEnds) {
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

TEST_F(DeviceTest, ACopyNamesItsEndsTruly) {
  const DeviceBuffer buffer(*device, 8, "values");
  EXPECT_THAT(MessageOf([&] {
                CopyToDevice(buffer.data<char>(), buffer.data<char>(), 8, CopyPurpose::kSetUp,
                             *stream);
              }),
              HasSubstr("device memory as its host end"));
}

}  // namespace
}  // namespace tetrion::cuda
