#include "lib/core/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace tetrion {
namespace {

constexpr std::size_t kBytes = 24 << 20;

long PageFaults() {
  rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

// Page faults of the second block of this size, after the first was freed.
long FaultsOfAnother() {
  long faults = 0;
  for (int block = 0; block < 2; ++block) {
    const long before = PageFaults();
    void* memory = std::malloc(kBytes);
    std::memset(memory, 1, kBytes);
    asm volatile("" : : "r"(memory) : "memory");  // the block is used
    faults = PageFaults() - before;
    std::free(memory);
  }
  return faults;
}

// In a process of its own: what is set holds for all of it.
TEST(FreedMemoryDeathTest, ABlockOfTheSameSizeFindsItsPagesThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's allocator is not glibc's";
#endif
  EXPECT_EXIT(
      {
        KeepFreedMemory();
        const long here = FaultsOfAnother();
        long elsewhere = -1;
        std::thread([&] { elsewhere = FaultsOfAnother(); }).join();
        std::exit(here < 100 && elsewhere < 100 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tetrion
