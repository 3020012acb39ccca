#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "tests/lib/shm/ring_memory.h"
#include "tests/support/single_step.h"

// One end of a ring acts between any two instructions of the other's call. Property: what was
// published is found, whole, whatever the moment; what was not is not.
namespace tetrion {
namespace {

using testing::RunWithActionAt;
using testing::SingleStep;

constexpr RingSpec kSpec = {.capacity = 4, .record_bytes = 8, .spec_hash = 1};

class InterruptedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::kCanSingleStep) GTEST_SKIP() << "single steps need x86-64 without TSan";
  }
};

void Write(RingProducer& producer, std::uint64_t value) {
  auto loan = producer.Claim();
  std::memcpy(loan.record(), &value, sizeof value);
  loan.Complete();
}

TEST_F(InterruptedTest, RingThatIsClosedDuringAPeekKeepsItsLastRecord) {
  int at = 0;
  for (bool closed = true; closed; ++at) {
    RingMemory memory(kSpec);
    RingProducer producer = RingProducer::Over(memory.get(), kSpec);
    RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
    RingPeek peek;
    closed = RunWithActionAt(
        at, [&] { peek = consumer.Peek(); },
        [&] {
          Write(producer, 7);
          producer.Close();
        });
    if (!closed) break;
    ASSERT_NE(peek.status, RingStatus::kClosedAndEmpty) << "at instruction " << at;
    if (peek.status == RingStatus::kEmpty) peek = consumer.Peek();
    ASSERT_EQ(peek.count, 1U) << "at instruction " << at;
    consumer.Release(1);
    ASSERT_EQ(consumer.Peek().status, RingStatus::kClosedAndEmpty);
  }
  EXPECT_GT(at, 10);
}

TEST_F(InterruptedTest, PeekDuringAPublicationFindsWholeRecordsOrNone) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec, 2);
  int looks = 0, found = 0, wrong = 0;
  SingleStep(
      [&] {
        Write(producer, 7);
        Write(producer, 8);
        producer.Publish();
      },
      [&](const unsigned char*) {
        RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
        const RingPeek peek = consumer.Peek();
        ++looks;
        if (peek.status != RingStatus::kOk) return true;
        ++found;
        std::uint64_t values[2];
        std::memcpy(values, peek.records, sizeof values[0]);
        std::memcpy(values + 1, peek.records + consumer.stride_bytes(), sizeof values[1]);
        wrong += peek.count != 2 || values[0] != 7 || values[1] != 8 ? 1 : 0;
        return true;
      });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, 0);
  EXPECT_GT(looks, found) << "nothing is seen before Publish";
}

TEST_F(InterruptedTest, PeekDuringACloseNeverEndsBeforeTheLastRecord) {
  RingMemory memory(kSpec);
  RingProducer producer = RingProducer::Over(memory.get(), kSpec);
  Write(producer, 7);
  int ended = 0;
  SingleStep([&] { producer.Close(); },
             [&](const unsigned char*) {
               RingConsumer consumer = RingConsumer::Over(memory.get(), kSpec);
               ended += consumer.Peek().status == RingStatus::kClosedAndEmpty ? 1 : 0;
               return true;
             });
  EXPECT_EQ(ended, 0) << "the record lies in the ring and is not released";
  EXPECT_EQ(memory.block().closed.load(), 1U);
}

}  // namespace
}  // namespace tetrion
