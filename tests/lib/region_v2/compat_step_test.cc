#include <gtest/gtest.h>

#include "lib/region_v2/compat_bell.h"
#include "lib/region_v2/compat_ring.h"
#include "lib/shm/bell.h"
#include "tests/support/asleep.h"
#include "tests/support/single_step.h"

// What compat_ring.h and compat_bell.h say of their order, seen in the machine's instructions, and
// wake-ups that a test has patience for. compat_bell_test.cc shows by a model why the order is
// needed; here it is tied to the code.
namespace tetrion {
namespace {

using testing::FullBarriers;
using testing::kPatienceNs;
using testing::Sleeper;

// A ring and a bell without their region: a program of headers is built in seconds.
class CompatStepTest : public ::testing::Test {
 protected:
  struct Memory {
    alignas(kCacheLinePairBytes) CompatRingHeader header;
    CompatAction entries[kCompatStreamEntries];
  };
  CompatActionRing Attach() {
    return CompatActionRing::Attach(reinterpret_cast<std::byte*>(&memory), kCompatStreamMagic,
                                    kCompatStreamEntries);
  }

  Memory memory = {.header = {.magic = kCompatStreamMagic, .size = kCompatStreamEntries}};
  std::uint32_t doorbell = 0, asleep = 0;
  CompatBell bell{doorbell, asleep};
  CompatStats stats;
};

TEST_F(CompatStepTest, PushAndArmEachPutABarrierBetweenTheirStoreAndTheNextLook) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  CompatActionRing producer = Attach();
  EXPECT_EQ(FullBarriers([&] { static_cast<void>(producer.Push({.seq = 1})); }), 1);
  EXPECT_EQ(FullBarriers([&] { static_cast<void>(bell.Arm()); }), 1);
}

TEST_F(CompatStepTest, PopDuringAPushFindsTheWholeEntryOrNone) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  constexpr CompatAction kEntry = {.seq = 7, .action = 1, .flags = 2, .ack_seq = 9};
  CompatActionRing producer = Attach();
  int found = 0, empty = 0, wrong = 0;
  testing::SingleStep([&] { static_cast<void>(producer.Push(kEntry)); },
                      [&](const unsigned char*) {
                        CompatActionRing consumer = Attach();
                        CompatAction entry = {};
                        const CompatRingResult popped = consumer.Pop(entry);
                        memory.header.tail = 0;  // as if nobody had looked
                        empty += popped == CompatRingResult::kEmpty ? 1 : 0;
                        if (popped != CompatRingResult::kOk) return true;
                        ++found;
                        wrong += entry.seq != kEntry.seq || entry.action != kEntry.action ||
                                 entry.flags != kEntry.flags || entry.ack_seq != kEntry.ack_seq;
                        return true;
                      });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
  EXPECT_GT(empty, 0);
}

TEST_F(CompatStepTest, SleeperThatSaysSoIsWokenByTheNextEntry) {
  const std::uint32_t expected = bell.Arm();
  const Sleeper sleeper(
      [&] { static_cast<void>(FutexWait(bell.word(), expected, 2 * kPatienceNs)); });
  ASSERT_TRUE(sleeper.FallsAsleep());
  bell.Published(/*was_empty=*/false, /*every=*/0, stats);
  EXPECT_TRUE(sleeper.IsDone());
}

TEST_F(CompatStepTest, QuietSleeperIsWokenBeforeTheRingingEndSleepsItself) {
  const std::uint32_t expected = bell.word().load();
  const Sleeper sleeper(
      [&] { static_cast<void>(FutexWait(bell.word(), expected, 2 * kPatienceNs)); });
  ASSERT_TRUE(sleeper.FallsAsleep());
  bell.Published(/*was_empty=*/true, /*every=*/0, stats);
  bell.Nudge(stats);
  EXPECT_TRUE(sleeper.IsDone());
}

}  // namespace
}  // namespace tetrion
