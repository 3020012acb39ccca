#include "lib/cuda/device.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

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

TEST_F(DeviceTest, ACopyNamesItsEndsTruly) {
  const DeviceBuffer buffer(*device, 8, "values");
  EXPECT_THAT(MessageOf([&] {
                CopyToDevice(buffer.data<char>(), buffer.data<char>(), 8, CopyPurpose::kSetUp,
                             *stream);
              }),
              HasSubstr("device memory as its host end"));
}

// [rows] of `width` bytes, a pitch apart; what lies between them holds 255.
std::vector<std::uint8_t> Rows(std::size_t rows, std::size_t width, std::size_t pitch) {
  std::vector<std::uint8_t> bytes((rows - 1) * pitch + width, 255);
  for (std::size_t i = 0; i < rows * width; ++i) {
    bytes[i / width * pitch + i % width] = static_cast<std::uint8_t>(i % 200);
  }
  return bytes;
}

class RowCopyTest : public DeviceFixture, public ::testing::WithParamInterface<bool> {
 protected:
  // Host memory, pinned or pageable as the parameter says.
  std::uint8_t* HostMemory(std::size_t bytes) {
    if (GetParam()) {
      pinned = PinnedBuffer(bytes, "rows");
    } else {
      pageable.resize(bytes);
    }
    return GetParam() ? pinned.data<std::uint8_t>() : pageable.data();
  }

  PinnedBuffer pinned;
  std::vector<std::uint8_t> pageable;
};

TEST_P(RowCopyTest, RowsHaveTheirOwnPitchAtEitherEnd) {
  constexpr std::size_t kRows = 5, kWidth = 48, kHostPitch = 64, kDevicePitch = 80;
  const std::vector<std::uint8_t> values = Rows(kRows, kWidth, kHostPitch);
  std::uint8_t* host = HostMemory(values.size());
  std::memcpy(host, values.data(), values.size());
  DeviceBuffer buffer(*device, (kRows - 1) * kDevicePitch + kWidth, "rows");
  SetBytes(buffer.data<char>(), 255, buffer.bytes(), *stream);
  CopyRowsToDevice(buffer.data<char>(), kDevicePitch, host, kHostPitch, kWidth, kRows,
                   CopyPurpose::kIngest, *stream);
  EXPECT_EQ(Download<std::uint8_t>(buffer), Rows(kRows, kWidth, kDevicePitch));
}

TEST_P(RowCopyTest, OneCopyOfTheirBytesIsCounted) {
  std::uint8_t* host = HostMemory(100);
  const MemoryKind kind = GetParam() ? MemoryKind::kPinned : MemoryKind::kPageable;
  std::memset(host, 0, 100);
  const DeviceBuffer buffer(*device, 100, "rows");
  const Activity before = ProcessActivity().Read();
  CopyRowsToDevice(buffer.data<char>(), 30, host, 32, 7, 3, CopyPurpose::kIngest, *stream);
  CopyRowsToDevice(buffer.data<char>(), 30, host, 32, 0, 3, CopyPurpose::kIngest, *stream);
  const Activity seen = ProcessActivity().Read().Since(before);
  const auto& in = seen.Of(CopyDirection::kHostToDevice, kind, CopyPurpose::kIngest);
  EXPECT_EQ(in.copies, 1U);
  EXPECT_EQ(in.bytes, 21U);
  stream->Synchronize();
}

TEST_P(RowCopyTest, APitchBelowTheWidthIsRefused) {
  std::uint8_t* host = HostMemory(100);
  const DeviceBuffer buffer(*device, 100, "rows");
  EXPECT_THAT(MessageOf([&] {
                CopyRowsToDevice(buffer.data<char>(), 30, host, 6, 7, 3, CopyPurpose::kIngest,
                                 *stream);
              }),
              HasSubstr("rows of 7 bytes has a pitch of 6"));
  EXPECT_THAT(MessageOf([&] {
                CopyRowsToDevice(buffer.data<char>(), std::size_t{1} << 31, host, 30, 7, 2,
                                 CopyPurpose::kIngest, *stream);
              }),
              HasSubstr("has a pitch of 2147483648"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, RowCopyTest, ::testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Pinned" : "Pageable");
});

// Shared memory that the test mapped, as a ring's is.
class PinnedRangeTest : public DeviceFixture {
 protected:
  static constexpr std::size_t kBytes = 8192;

  void SetUp() override {
    DeviceFixture::SetUp();
    if (IsSkipped()) return;
    void* mapped =
        mmap(nullptr, 4 * kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    memory = static_cast<char*>(mapped);
  }
  void TearDown() override {
    if (memory != nullptr) (void)munmap(memory, 4 * kBytes);
  }

  char* memory = nullptr;
};

TEST_F(PinnedRangeTest, ItsMemoryIsPinnedForItsLife) {
  const DeviceBuffer buffer(*device, 64, "values");
  const auto copied_as = [&](MemoryKind kind, char* host) {
    const Activity before = ProcessActivity().Read();
    CopyToDevice(buffer.data<char>(), host, 64, CopyPurpose::kIngest, *stream);
    stream->Synchronize();
    const Activity seen = ProcessActivity().Read().Since(before);
    return seen.Of(CopyDirection::kHostToDevice, kind, CopyPurpose::kIngest).copies == 1;
  };
  EXPECT_TRUE(copied_as(MemoryKind::kPageable, memory));
  {
    const PinnedRange range(*device, memory, kBytes, "a ring");
    EXPECT_EQ(range.bytes(), kBytes);
    EXPECT_TRUE(copied_as(MemoryKind::kPinned, memory));
    EXPECT_TRUE(copied_as(MemoryKind::kPinned, memory + kBytes - 64));
    EXPECT_TRUE(copied_as(MemoryKind::kPageable, memory + kBytes));
  }
  EXPECT_TRUE(copied_as(MemoryKind::kPageable, memory));
}

TEST_F(PinnedRangeTest, CopiesReachTheMemoryOfTheCaller) {
  const PinnedRange range(*device, memory, kBytes, "a ring");
  const DeviceBuffer buffer(*device, kBytes / 2, "values");
  for (std::size_t i = 0; i < kBytes; ++i) memory[i] = static_cast<char>(i % 97);
  CopyToDevice(buffer.data<char>(), memory, kBytes / 2, CopyPurpose::kIngest, *stream);
  CopyToHost(memory + kBytes / 2, buffer.data<char>(), kBytes / 2, CopyPurpose::kAccount, *stream);
  stream->Synchronize();
  EXPECT_EQ(std::memcmp(memory, memory + kBytes / 2, kBytes / 2), 0);
}

TEST_F(PinnedRangeTest, MovesAndPinsOnce) {
  static_assert(!std::is_copy_constructible_v<PinnedRange>);
  PinnedRange range(*device, memory, kBytes, "a ring");
  EXPECT_THROW(PinnedRange(*device, memory, kBytes, "the same"), Error);
  EXPECT_THROW(PinnedRange(*device, memory + 16, 16, "a part"), Error);
  EXPECT_THROW(PinnedRange(*device, memory, 4 * kBytes, "more"), Error);
  const PinnedRange next(*device, memory + kBytes, kBytes, "the next");
  EXPECT_EQ(PinnedRange().bytes(), 0U);
  PinnedRange moved = std::move(range);
  EXPECT_EQ(moved.bytes(), kBytes);
  EXPECT_EQ(range.bytes(), 0U);  // NOLINT: what is left behind is empty
  moved = PinnedRange();
  const PinnedRange again(*device, memory, kBytes, "free again");
}

TEST_F(PinnedRangeTest, PinnedMemoryAndNoMemoryAreRefused) {
  const PinnedBuffer buffer(64, "pinned");
  EXPECT_THROW(PinnedRange(*device, buffer.data<char>(), 64, "pinned already"), Error);
  EXPECT_THAT(MessageOf([&] { PinnedRange(*device, memory, 0, "an empty ring"); }),
              HasSubstr("an empty ring has no bytes to pin"));
}

// As an ended ring's while the trainer records its update.
TEST_F(PinnedRangeTest, UnpinningWhileAnotherStreamCapturesLeavesTheCaptureAlone) {
  const DeviceBuffer buffer(*device, kBytes, "values");
  Stream captured(*device, "captured");
  auto range = std::make_unique<PinnedRange>(*device, memory, kBytes, "a ring");
  Capture capture(captured);
  SetBytes(buffer.data<char>(), 5, kBytes, captured);
  std::thread([&range] { range.reset(); }).join();
  const Graph graph = capture.End();
  captured.Launch(graph);
  std::vector<char> seen(kBytes);
  CopyToHost(seen.data(), buffer.data<char>(), kBytes, CopyPurpose::kAccount, captured);
  captured.Synchronize();
  EXPECT_EQ(seen[kBytes - 1], 5);
}

}  // namespace
}  // namespace tetrion::cuda
