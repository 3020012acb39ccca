#include "lib/cuda/sim/shared_memory.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tetrion::cuda::sim {
namespace {

TEST(SharedMemoryTest, KnowsWhichBytesWereWritten) {
  SharedMemory memory;
  memory.Begin(64);
  auto* bytes = static_cast<std::byte*>(memory.dynamic());
  EXPECT_FALSE(memory.Written(bytes, 4));
  memory.NoteWrite(bytes, 3);
  EXPECT_TRUE(memory.Written(bytes, 3));
  EXPECT_FALSE(memory.Written(bytes, 4)) << "one byte of four is missing";
  bytes[0] = std::byte{1};
  memory.Begin(64);
  EXPECT_FALSE(memory.Written(bytes, 1)) << "the next block finds nothing";
  EXPECT_EQ(bytes[0], std::byte{0xFF});
}

TEST(SharedMemoryTest, ArraysAreToldApartByTheirTag) {
  SharedMemory memory;
  const char tags[2] = {};
  memory.Begin(10);
  void* first = memory.Static(&tags[0], 10);
  void* second = memory.Static(&tags[1], 10);
  EXPECT_NE(first, second);
  EXPECT_EQ(memory.Static(&tags[0], 10), first) << "every thread of the block finds the same";
  EXPECT_GE(static_cast<std::byte*>(first), static_cast<std::byte*>(memory.dynamic()) + 10);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 16, 0U);
}

TEST(SharedMemoryTest, ABlockHasNoMoreThanADeviceGives) {
  SharedMemory memory;
  const char tags[2] = {};
  memory.Begin(SharedMemory::kMostBytes - 16);
  EXPECT_NE(memory.Static(&tags[0], 16), nullptr);
  EXPECT_EQ(memory.Static(&tags[1], 1), nullptr);
}

TEST(SharedMemoryTest, ArraysAreNoLargerThanNvccCompiles) {
  SharedMemory memory;
  const char tags[2] = {};
  for (int block = 0; block < 2; ++block) {
    memory.Begin(100 * 1024);
    EXPECT_NE(memory.Static(&tags[0], SharedMemory::kMostStaticBytes), nullptr);
    EXPECT_EQ(memory.Static(&tags[1], 1), nullptr);
  }
  memory.Begin(0);
  EXPECT_EQ(memory.Static(&tags[0], SharedMemory::kMostStaticBytes + 1), nullptr);
}

}  // namespace
}  // namespace tetrion::cuda::sim
