#include "lib/cuda/sim/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "tests/lib/cuda/sim/bad_kernels.cuh"
#include "tests/support/sim_schedules.h"

namespace tetrion::cuda::sim {
namespace {

using ::testing::HasSubstr;

TEST(SimMemoryTest, FreshMemoryIsPoisonedAndAligned) {
  Memory memory;
  memory.set_limit(1 << 20);
  for (const std::size_t bytes : {1U, 256U, 5000U}) {
    auto* data = static_cast<unsigned char*>(memory.Allocate(bytes, MemoryKind::kDevice));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % Memory::kAlignBytes, 0U);
    memory.Open();
    EXPECT_EQ(data[0], Memory::kFresh);
    EXPECT_EQ(data[bytes - 1], Memory::kFresh);
    memory.Close();
    EXPECT_TRUE(memory.IsWithin(data, bytes, MemoryKind::kDevice));
    EXPECT_FALSE(memory.IsWithin(data, bytes + 1, MemoryKind::kDevice));
    EXPECT_FALSE(memory.IsWithin(data + bytes, 0, MemoryKind::kDevice));
    EXPECT_FALSE(memory.IsWithin(data, bytes, MemoryKind::kPinned));
    memory.Free(data);
    EXPECT_FALSE(memory.IsWithin(data, 1, MemoryKind::kDevice));
  }
  EXPECT_EQ(memory.free_bytes(), std::size_t{1} << 20);
}

TEST(SimMemoryTest, TellsKindsApart) {
  Memory memory;
  memory.set_limit(4096);
  void* device = memory.Allocate(10, MemoryKind::kDevice);
  void* pinned = memory.Allocate(10, MemoryKind::kPinned);
  const int pageable = 0;
  EXPECT_EQ(memory.KindOf(device), MemoryKind::kDevice);
  EXPECT_EQ(memory.KindOf(pinned), MemoryKind::kPinned);
  EXPECT_EQ(memory.KindOf(&pageable), MemoryKind::kPageable);
  EXPECT_EQ(memory.free_bytes(), 4096U - 256U) << "pinned memory is the host's";
  EXPECT_EQ(memory.Allocate(4096, MemoryKind::kDevice), nullptr);
  memory.Free(device);
  memory.Free(pinned);
}

TEST(SimMemoryTest, PinsMemoryOfOthersByPages) {
  Memory memory;
  const std::vector<std::byte> others(5 * 4096);
  const auto begin = reinterpret_cast<std::uintptr_t>(others.data());  // an address, to be aligned
  const std::byte* page = others.data() + (4096 - begin % 4096) % 4096;
  EXPECT_TRUE(memory.Pin(page + 100, 4096));
  EXPECT_EQ(memory.KindOf(page + 99), MemoryKind::kPageable);
  EXPECT_EQ(memory.KindOf(page + 100), MemoryKind::kPinned);
  EXPECT_EQ(memory.KindOf(page + 4195), MemoryKind::kPinned);
  EXPECT_EQ(memory.KindOf(page + 4196), MemoryKind::kPageable);
  EXPECT_TRUE(memory.IsWithin(page + 100, 4096, MemoryKind::kPinned));
  EXPECT_FALSE(memory.IsWithin(page + 101, 4096, MemoryKind::kPinned));
  EXPECT_FALSE(memory.IsWithin(page + 100, 4096, MemoryKind::kDevice));
  EXPECT_FALSE(memory.Pin(page, 1)) << "the first page is pinned";
  EXPECT_FALSE(memory.Pin(page + 8191, 1)) << "and the second";
  EXPECT_TRUE(memory.Pin(page + 8192, 1));
  memory.Unpin(page + 100);
  EXPECT_EQ(memory.KindOf(page + 100), MemoryKind::kPageable);
  EXPECT_TRUE(memory.Pin(page, 8192));
}

TEST(SimMemoryTest, DescribesAddressesAroundABuffer) {
  Memory memory;
  memory.set_limit(1 << 20);
  auto* data = static_cast<std::byte*>(memory.Allocate(100, MemoryKind::kDevice));
  EXPECT_THAT(memory.Describe(data + 50).value(), HasSubstr("lies in a buffer of 100 bytes"));
  EXPECT_THAT(memory.Describe(data + 300).value(), HasSubstr("200 bytes past the end"));
  EXPECT_THAT(memory.Describe(data - 1).value(), HasSubstr("in front of"));
  memory.Free(data);
  EXPECT_THAT(memory.Describe(data).value(), HasSubstr("that was freed"));
  EXPECT_FALSE(memory.Describe(&memory).has_value());
}

TEST(SimMemoryTest, FreedAddressesAreKeptForAWhile) {
  Memory memory;
  memory.set_limit(1 << 20);
  void* first = memory.Allocate(1, MemoryKind::kDevice);
  memory.Free(first);
  for (std::size_t i = 0; i < Memory::kQuarantined; ++i) {
    EXPECT_TRUE(memory.Describe(first).has_value());
    memory.Free(memory.Allocate(1, MemoryKind::kDevice));
  }
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(SimMemoryTest, SeesWhatWasWrittenAroundABuffer) {
  Memory memory;
  memory.set_limit(1 << 20);
  for (const std::ptrdiff_t distance : {1, 2000, 3840}) {
    auto* data = static_cast<std::byte*>(memory.Allocate(100, MemoryKind::kPinned));
    EXPECT_FALSE(memory.Overrun().has_value());
    data[-distance] = std::byte{1};
    EXPECT_THAT(memory.Overrun().value(), HasSubstr("in front of a buffer of 100 bytes"));
    memory.Free(data);
  }
  auto* data = static_cast<std::byte*>(memory.Allocate(100, MemoryKind::kDevice));
  EXPECT_FALSE(memory.Overrun().has_value());
  data[155] = std::byte{1};
  EXPECT_THAT(memory.Overrun().value(), HasSubstr("past the end of a buffer of 100 bytes"));
  memory.Free(data);
}

TEST(SimMemoryTest, AnyOperationFindsWhatTheHostWroteAroundPinnedMemory) {
  Simulator::Get().Restart({});
  const Device device(0);
  DeviceBuffer value(device, 4, "value");
  PinnedBuffer pinned(100, "pinned");
  Stream stream(device, "work");
  SetBytes(value.data<char>(), 0, 4, stream);
  pinned.data<char>()[-1] = 1;
  EXPECT_THROW(stream.Synchronize(), Error);
  EXPECT_THAT(
      Simulator::Get().TakeFinding().value().text,
      HasSubstr("the host, before an operation on stream work writes in front of a buffer"));
}
#else
TEST(SimMemoryDeathTest, AddressSanitizerSeesTheFillsAroundABuffer) {
  static Memory memory;
  memory.set_limit(1 << 20);
  auto* data = static_cast<volatile char*>(memory.Allocate(100, MemoryKind::kPinned));
  data[0] = 1;
  data[99] = 1;
  EXPECT_DEATH(data[-3840] = 1, "use-after-poison");
  EXPECT_DEATH(data[-1] = 1, "use-after-poison");
  EXPECT_DEATH(data[100] = 1, "use-after-poison");
  memory.Free(const_cast<char*>(data));
}
#endif

// The process dies, as with any wild pointer, but says first which buffer and which kernel.
TEST(SimMemoryDeathTest, AFarRawWriteNamesBufferAndKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Simulator::Get().Restart({.schedule = {Order::kForward, 0}});
        const Device device(0);
        const DeviceBuffer out(device, 256, "out");
        Stream stream(device, "work");
        Launch(stream, RawWriteFarPastTheEnd, 1, 32, 0, out.data<std::int32_t>(), 64);
        stream.Synchronize();
      },
      "4096 bytes past the end of a buffer of 256 bytes.*memory_test.cc.*thread \\(0,0,0\\)");
}

TEST(SimMemoryDeathTest, UseAfterFreeFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Simulator::Get().Restart({});
        const Device device(0);
        Stream stream(device, "work");
        std::int32_t* gone = DeviceBuffer(device, 4096, "short-lived").data<std::int32_t>();
        Launch(stream, RawWritePastTheEnd, 1, 32, 0, gone, 0);
        stream.Synchronize();
      },
      "in a buffer of 4096 bytes that was freed");
}

}  // namespace
}  // namespace tetrion::cuda::sim
