#include "lib/collect/ring_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"

namespace tetrion {
namespace {

struct Fixture {
  Fixture()
      : layout({.record_bytes = 16, .lanes = 2, .has_mask = false}),
        spec{.capacity = 8, .record_bytes = layout.row_bytes, .spec_hash = layout.Hash()},
        memory(static_cast<std::byte*>(std::aligned_alloc(4096, RingMemoryBytes(spec))),
               &std::free) {
    std::fill_n(memory.get(), RingMemoryBytes(spec), std::byte{0});
  }

  const RowLayout layout;
  const RingSpec spec;
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
};

TEST(RingSinkTest, PublishesWholeStridesAndTheRestOnFlush) {
  Fixture f;
  RingSink sink(f.layout, RingProducer::Over(f.memory.get(), f.spec), /*commit_stride=*/4);
  RingConsumer consumer = RingConsumer::Over(f.memory.get(), f.spec);
  RowView row;
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
    row.header->row = i;
    sink.Complete();
    EXPECT_EQ(sink.PublishedRows(), i + 1 >= 4 ? 4U : 0U);
  }
  EXPECT_EQ(consumer.Peek().count, 4U);
  sink.Flush();
  EXPECT_EQ(sink.PublishedRows(), 6U);
  EXPECT_EQ(consumer.Peek(4).count, 2U);
}

TEST(RingSinkTest, FullRingIsAResultAndSpaceComesBackWithARelease) {
  Fixture f;
  RingSink sink(f.layout, RingProducer::Over(f.memory.get(), f.spec), 1);
  RingConsumer consumer = RingConsumer::Over(f.memory.get(), f.spec);
  RowView row;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
    sink.Complete();
  }
  EXPECT_EQ(sink.Claim(row, 0), ClaimResult::kFull);
  EXPECT_EQ(sink.Claim(row, kNanosPerMilli), ClaimResult::kFull);
  ASSERT_EQ(consumer.Peek().status, RingStatus::kOk);
  consumer.Release(1);
  EXPECT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
}

TEST(RingSinkTest, CloseTellsTheConsumerThatNothingFollows) {
  Fixture f;
  RingSink sink(f.layout, RingProducer::Over(f.memory.get(), f.spec), 100);
  RingConsumer consumer = RingConsumer::Over(f.memory.get(), f.spec);
  RowView row;
  ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
  sink.Complete();
  sink.Close();
  ASSERT_EQ(consumer.Peek().count, 1U);
  consumer.Release(1);
  EXPECT_EQ(consumer.Peek().status, RingStatus::kClosedAndEmpty);
}

TEST(RingSinkTest, RowsThatACourierTakesHaveArrivedWhenTheyAreReleased) {
  Fixture f;
  RingSink sink(f.layout, RingProducer::Over(f.memory.get(), f.spec), 1, RowArrival::kWhenReleased);
  RingConsumer courier = RingConsumer::Over(f.memory.get(), f.spec);
  RowView row;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
    sink.Complete();
  }
  EXPECT_EQ(sink.PublishedRows(), 0U);
  ASSERT_EQ(courier.Peek().count, 5U);
  EXPECT_EQ(sink.PublishedRows(), 0U) << "looked at, not acknowledged";
  courier.Release(3);
  EXPECT_EQ(sink.PublishedRows(), 3U);
}

TEST(RingSinkTest, CursorThatNoLearnerCouldSetEndsTheWorker) {
  Fixture f;
  RingSink sink(f.layout, RingProducer::Over(f.memory.get(), f.spec), 1);
  RowView row;
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(sink.Claim(row, 0), ClaimResult::kRow);
    sink.Complete();
  }
  reinterpret_cast<RingBlock*>(f.memory.get())->tail = 9;  // of 8 that were published
  try {
    (void)sink.Claim(row, 1);
    FAIL() << "the worker would wait for ever";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
    EXPECT_NE(std::string(error.what()).find("impossible"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
