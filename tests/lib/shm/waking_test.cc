#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "lib/core/clock.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "tests/lib/shm/ring_memory.h"
#include "tests/support/asleep.h"
#include "tests/support/single_step.h"

// Who sleeps is woken, and at once: each test lets one end fall asleep for longer than the test has
// patience, does what must wake it, and fails when it sleeps on.
namespace tetrion {
namespace {

using testing::FullBarriers;
using testing::kPatienceNs;
using testing::Sleeper;

constexpr RingSpec kSpec = {.capacity = 8, .record_bytes = 64, .spec_hash = 1};
constexpr std::int64_t kNapNs = 2 * kPatienceNs;

class WakingTest : public ::testing::Test {
 protected:
  WakingTest() { producer.SetBell(bell); }
  bool Push() {
    auto loan = producer.Claim();
    if (!loan.ok()) return false;
    loan.Complete();
    return true;
  }
  void Fill() {
    while (Push()) {
    }
    producer.Publish();
  }

  RingMemory memory{kSpec};
  BellBlock block = {};
  Bell bell{&block};
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
};

TEST_F(WakingTest, PublishWakesASleepingConsumer) {
  const std::uint32_t armed = bell.Arm();
  const Sleeper sleeper([&] { static_cast<void>(bell.Wait(armed, kNapNs)); });
  ASSERT_TRUE(sleeper.FallsAsleep());
  ASSERT_TRUE(Push());
  producer.Publish();
  EXPECT_TRUE(sleeper.IsDone());
}

TEST_F(WakingTest, CloseWakesASleepingConsumer) {
  const std::uint32_t armed = bell.Arm();
  const Sleeper sleeper([&] { static_cast<void>(bell.Wait(armed, kNapNs)); });
  ASSERT_TRUE(sleeper.FallsAsleep());
  producer.Close();
  EXPECT_TRUE(sleeper.IsDone());
}

TEST_F(WakingTest, ReleaseOfOneRecordWakesAProducerThatSleepsForSpace) {
  Fill();
  ASSERT_EQ(consumer.Peek().count, kSpec.capacity);
  std::atomic<bool> found{false};
  const Sleeper sleeper([&] { found = producer.WaitForSpace(kNapNs) == SpaceResult::kSpace; });
  ASSERT_TRUE(sleeper.FallsAsleep());
  consumer.Release(1);
  EXPECT_TRUE(sleeper.IsDone());
  EXPECT_TRUE(found);
}

// Without a thread: whichever records of a full ring are given back, the bell is rung by then.
TEST_F(WakingTest, EveryReleaseUnarmsTheSpaceBell) {
  for (std::uint64_t count = 1; count <= kSpec.capacity; ++count) {
    Fill();
    while (consumer.Peek().status == RingStatus::kOk) {
      Bell space(&memory.block().space);
      static_cast<void>(space.Arm());
      consumer.Release(std::min<std::uint64_t>(count, consumer.Peek().count));
      EXPECT_EQ(memory.block().space.word.load() & 1U, 0U) << "released " << count;
    }
  }
}

// A look at the bell that is a plain load may be served before the store of the cursor leaves the
// core's store buffer: the sleeper's re-check misses the record, and the look misses the sleeper.
// No single core shows that, and two show it by luck; the barrier itself can be seen.
TEST_F(WakingTest, PublishPutsABarrierBetweenItsCursorAndItsLookAtTheBell) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  ASSERT_TRUE(Push());
  EXPECT_EQ(FullBarriers([&] { producer.Publish(); }), 1);
  EXPECT_EQ(FullBarriers([&] { producer.Publish(); }), 0) << "nothing new";
  EXPECT_EQ(FullBarriers([&] { producer.Close(); }), 1);
}

// The same for space: of the Releases of a whole ring, those that cross a quarter do so for
// certain.
TEST_F(WakingTest, ReleaseAcrossAQuarterPutsABarrierBetweenItsCursorAndItsLookAtTheBell) {
  if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  Fill();
  ASSERT_EQ(consumer.Peek().count, kSpec.capacity);
  for (std::uint64_t released = 1; released <= kSpec.capacity; ++released) {
    const int barriers = FullBarriers([&] { consumer.Release(1); });
    EXPECT_EQ(barriers, released % (kSpec.capacity / 4) == 0 ? 1 : 0) << released;
  }
}

}  // namespace
}  // namespace tetrion
