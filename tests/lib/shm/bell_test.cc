#include "lib/shm/bell.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

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

// As memory of a device, mapped by page frames: the kernel answers EFAULT.
TEST(FutexTest, WordThatTheKernelCannotWaitOnIsLookedAtAgainAfterAPause) {
  void* page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& word = *static_cast<std::atomic<std::uint32_t>*>(page);
  const std::int64_t begin_ns = MonotonicClock::Get().NowNs();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(FutexWait(word, 0, kLongNs), FutexResult::kWoken);
  EXPECT_GE(MonotonicClock::Get().NowNs() - begin_ns, 10 * kNanosPerMilli);
  EXPECT_EQ(FutexWait(word, 0, 1), FutexResult::kWoken);
  munmap(page, 4096);
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

TEST(BellTest, RingWhileAwakeCostsNoWakeUp) {
  BellBlock block = {};
  Bell bell(&block);
  bell.Ring();
  EXPECT_EQ(block.word.load(), 0U);
  EXPECT_EQ(bell.WakesApprox(), 0U);
}

TEST(BellTest, RingBetweenArmAndWaitPreventsTheSleep) {
  BellBlock block = {};
  Bell bell(&block);
  const std::uint32_t armed = bell.Arm();
  bell.Ring();
  EXPECT_EQ(bell.Wait(armed, 30 * kNanosPerSecond), BellResult::kRung);
  EXPECT_EQ(bell.SleepsApprox(), 0U);
  EXPECT_EQ(bell.WakesApprox(), 1U);
}

TEST(BellTest, SecondRingOfOneArmingDoesNotEnterTheKernel) {
  BellBlock block = {};
  Bell bell(&block);
  const std::uint32_t armed = bell.Arm();
  bell.Ring();
  bell.Ring();
  EXPECT_EQ(bell.WakesApprox(), 1U);
  EXPECT_EQ(bell.Wait(armed, 0), BellResult::kRung);
}

TEST(BellTest, WaitWithoutRingTimesOutAndDisarms) {
  BellBlock block = {};
  Bell bell(&block);
  const std::uint32_t armed = bell.Arm();
  EXPECT_EQ(bell.Wait(armed, kNanosPerMilli), BellResult::kTimeout);
  EXPECT_EQ(block.word.load() & 1U, 0U);
  bell.Ring();
  EXPECT_EQ(bell.WakesApprox(), 0U);
}

TEST(BellTest, DisarmedBellIsRungForNothing) {
  BellBlock block = {};
  Bell bell(&block);
  bell.Disarm(bell.Arm());
  bell.Ring();
  EXPECT_EQ(bell.WakesApprox(), 0U);
  const std::uint32_t armed = bell.Arm();
  bell.Ring();
  bell.Disarm(armed);  // too late: changes nothing
  EXPECT_EQ(block.word.load() & 1U, 0U);
}

TEST(BellTest, CountAboveTheArmedBitWrapsAround) {
  BellBlock block = {};
  block.word.store(0xFFFFFFFEU);
  Bell bell(&block);
  const std::uint32_t armed = bell.Arm();
  EXPECT_EQ(armed, 0xFFFFFFFFU);
  bell.Ring();
  EXPECT_EQ(block.word.load(), 0U);
  EXPECT_EQ(bell.Wait(armed, 30 * kNanosPerSecond), BellResult::kRung);
}

TEST(BellTest, GarbageInTheWordCannotHoldAWaiterPastItsDeadline) {
  for (const std::uint32_t garbage : {0U, 1U, 2U, 0xDEADBEEFU, 0xFFFFFFFFU}) {
    BellBlock block = {};
    Bell bell(&block);
    const std::uint32_t armed = bell.Arm();
    block.word.store(garbage);
    static_cast<void>(bell.Wait(armed, kNanosPerMilli));
    bell.Ring();
    static_cast<void>(bell.Wait(bell.Arm(), kNanosPerMilli));
  }
}

// The model: producers and one consumer as the few steps of bell.h, run in every order. A
// producer's publication first enters its store buffer and reaches memory at any later point, at
// the latest before its next locked instruction (x86; on weaker machines the read-modify-write
// orders the same way). A lost wake-up is a state in which nobody can move, the consumer sleeps,
// and something is published that it has not seen.
constexpr int kProducers = 2;

struct ModelState {
  int word = 0;   // bit 0 armed, above: count
  int armed = 0;  // what the consumer sleeps on
  bool asleep = false;
  int consumer_step = 5;               // 5 look, 0 arm, 1 re-check, 2 go to sleep, 3 asleep, 4 done
  int producer_step[kProducers] = {};  // 0 publish, 1 look, 2 unarm, 3 wake, 4 done
  int seen_word[kProducers] = {};
  bool buffered[kProducers] = {};  // published but not in memory yet
  bool visible[kProducers] = {};   // in memory

  auto Key() const {
    return std::tuple(word, armed, asleep, consumer_step,
                      std::vector<int>(producer_step, producer_step + kProducers),
                      std::vector<int>(seen_word, seen_word + kProducers),
                      std::vector<bool>(buffered, buffered + kProducers),
                      std::vector<bool>(visible, visible + kProducers));
  }
  bool AllVisible() const {
    for (const bool is_visible : visible) {
      if (!is_visible) return false;
    }
    return true;
  }
};

struct ModelVariant {
  bool locked_look = true;   // Ring looks at the word with a read-modify-write
  bool re_check = true;      // the consumer looks at its sources after Arm
  bool compare_word = true;  // the kernel compares the word before it lets the consumer sleep
};

// All states reachable in one step.
std::vector<ModelState> Successors(const ModelState& state, const ModelVariant& variant) {
  std::vector<ModelState> next;
  const auto add = [&](auto&& change) {
    next.push_back(state);
    change(next.back());
  };
  for (int p = 0; p < kProducers; ++p) {
    if (state.buffered[p]) {
      add([p](ModelState& s) { s.buffered[p] = false, s.visible[p] = true; });
    }
    switch (state.producer_step[p]) {
      case 0:
        add([p](ModelState& s) { s.buffered[p] = true, s.producer_step[p] = 1; });
        break;
      case 1:  // fetch_add(0), which drains the store buffer first, or a plain load
        if (variant.locked_look && state.buffered[p]) break;
        add([p](ModelState& s) {
          s.seen_word[p] = s.word;
          s.producer_step[p] = (s.word & 1) != 0 ? 2 : 4;
        });
        break;
      case 2:  // compare_exchange(seen, seen + 1): always locked
        if (state.buffered[p]) break;
        add([p](ModelState& s) {
          const bool rung = s.word == s.seen_word[p];
          if (rung) ++s.word;
          s.producer_step[p] = rung ? 3 : 4;
        });
        break;
      case 3:  // FutexWake
        add([p](ModelState& s) {
          if (s.asleep) s.asleep = false, s.consumer_step = 5;
          s.producer_step[p] = 4;
        });
        break;
      default:
        break;
    }
  }
  switch (state.consumer_step) {
    case 0:
      add([](ModelState& s) { s.word |= 1, s.armed = s.word, s.consumer_step = 1; });
      break;
    case 1:  // done when everything is seen, else sleep
      add([&](ModelState& s) { s.consumer_step = variant.re_check && s.AllVisible() ? 4 : 2; });
      break;
    case 2:  // the kernel's compare-and-sleep is one step
      add([&](ModelState& s) {
        const bool sleeps = !variant.compare_word || s.word == s.armed;
        s.asleep = sleeps;
        s.consumer_step = sleeps ? 3 : 5;
      });
      break;
    case 5:
      add([](ModelState& s) { s.consumer_step = s.AllVisible() ? 4 : 0; });
      break;
    default:
      break;
  }
  return next;
}

// Walks every interleaving; returns the number of stuck states with a sleeping consumer.
int LostWakeUps(const ModelVariant& variant, std::size_t& states) {
  std::vector<ModelState> open = {ModelState{}};
  std::set<decltype(ModelState{}.Key())> met = {ModelState{}.Key()};
  int lost = 0;
  while (!open.empty()) {
    const ModelState state = open.back();
    open.pop_back();
    const std::vector<ModelState> next = Successors(state, variant);
    if (next.empty() && state.asleep) ++lost;
    for (const ModelState& s : next) {
      if (met.insert(s.Key()).second) open.push_back(s);
    }
  }
  states = met.size();
  return lost;
}

TEST(BellModelTest, NoInterleavingLosesAWakeUp) {
  std::size_t states = 0;
  EXPECT_EQ(LostWakeUps({}, states), 0);
  EXPECT_GT(states, 100U);
}

TEST(BellModelTest, EveryStepOfTheProtocolIsNeeded) {
  std::size_t states = 0;
  EXPECT_GT(LostWakeUps({.locked_look = false}, states), 0);
  EXPECT_GT(LostWakeUps({.re_check = false}, states), 0);
  EXPECT_GT(LostWakeUps({.compare_word = false}, states), 0);
}

}  // namespace
}  // namespace tetrion
