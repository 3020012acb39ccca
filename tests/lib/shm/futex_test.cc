#include "lib/shm/futex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

constexpr std::int64_t kLongNs = 30 * kNanosPerSecond;

TEST(FutexTest, WordThatHasChangedIsNotSleptOn) {
  std::atomic<std::uint32_t> word{7};
  EXPECT_EQ(FutexWait(word, 6, kLongNs), FutexResult::kChanged);
}

TEST(FutexTest, NobodyWakingEndsInTimeout) {
  std::atomic<std::uint32_t> word{7};
  EXPECT_EQ(FutexWait(word, 7, kNanosPerMilli), FutexResult::kTimeout);
  EXPECT_EQ(FutexWait(word, 7, 0), FutexResult::kTimeout);
  EXPECT_EQ(FutexWait(word, 7, -5), FutexResult::kTimeout);
}

TEST(FutexTest, WakeWithoutSleepersWakesNobody) {
  std::atomic<std::uint32_t> word{0};
  EXPECT_EQ(FutexWake(word, 1), 0);
}

TEST(FutexTest, SleeperInAnotherProcessIsWoken) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* word = new (page) std::atomic<std::uint32_t>(0);
  const pid_t child = fork();
  if (child == 0) {
    while (word->load() == 0) {
      if (FutexWait(*word, 0, kLongNs) == FutexResult::kTimeout) _exit(1);
    }
    _exit(0);
  }
  int woken = 0;  // wakes for as long as the child may not be asleep yet, without changing the word
  const Deadline deadline = Deadline::AfterMs(30'000);
  while (woken == 0 && !deadline.Passed()) {
    woken = FutexWake(*word, 1);
    std::this_thread::yield();
  }
  EXPECT_EQ(woken, 1);
  word->store(1);
  FutexWake(*word, 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  munmap(page, 4096);
}

}  // namespace
}  // namespace tetrion
