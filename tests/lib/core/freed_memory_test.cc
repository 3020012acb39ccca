#include "lib/core/freed_memory.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tetrion {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kNoSuchBlock = 2, kNotInTheHeap = 3;  // exit statuses

long PageFaults() {
  rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_minflt;
}

void* Used(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  std::memset(memory, 1, bytes);
  asm volatile("" : : "r"(memory) : "memory");  // the block is used
  return memory;
}

// Page faults of four blocks of this size, after four were freed. Pages are small ones: of huge
// pages there are too few to tell.
long FaultsOfOthers(std::size_t bytes) {
  long faults = 0;
  for (int round = 0; round < 2; ++round) {
    const long before = PageFaults();
    std::array<void*, 4> blocks = {};
    for (void*& block : blocks) block = Used(bytes);
    faults = PageFaults() - before;
    for (void* block : blocks) std::free(block);
  }
  return faults;
}

// Whether blocks of this size find their pages there, in this thread and in another.
bool FindPagesThere(std::size_t bytes) {
  if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return false;
  long here = -1, elsewhere = -1;
  here = FaultsOfOthers(bytes);
  std::thread([&] { elsewhere = FaultsOfOthers(bytes); }).join();
  return here < 100 && elsewhere < 100;
}

// In processes of their own: what is set holds for all of a process.
class FreedMemoryDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer's allocator is not glibc's";
#endif
  }
};

TEST_F(FreedMemoryDeathTest, BlocksOfTheSameSizeFindTheirPagesThere) {
  EXPECT_EXIT(
      {
        KeepFreedMemory();
        std::exit(FindPagesThere(24 * kMiB) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FreedMemoryDeathTest, SoDoBlocksLargerThanGlibcKeepsOtherwise) {
  EXPECT_EXIT(
      {
        KeepFreedMemory();
        std::exit(FindPagesThere(40 * kMiB) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(FreedMemoryDeathTest, GigabytesThatAreFreedAreKept) {
  EXPECT_EXIT(
      {
        KeepFreedMemory();
        constexpr std::ptrdiff_t kBytes = 3 * 1024 * std::ptrdiff_t{kMiB};
        const char* const begin = static_cast<const char*>(sbrk(0));
        void* memory = std::malloc(kBytes);  // its pages are not touched
        asm volatile("" : : "r"(memory) : "memory");
        const char* const end = static_cast<const char*>(sbrk(0));
        if (memory == nullptr) std::exit(kNoSuchBlock);
        if (end - begin < kBytes) std::exit(kNotInTheHeap);
        std::free(memory);
        std::exit(sbrk(0) == end ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tetrion
