#include "services/actor/row_stream.h"

#include <gtest/gtest.h>

#include "tests/services/actor/rows_world.h"

namespace tetrion::actor {
namespace {

using testing::CountingRing;
using testing::kRowBytes;
using testing::NumberAt;
using testing::RecordingPort;
using wire::CloseRows;
using wire::OpenRows;
using wire::RowBatch;

constexpr const char* kPath = "remote:0000000000000005.0";

class RowStreamTest : public ::testing::Test {
 protected:
  // What is sent in one round.
  RecordingPort Round() {
    RecordingPort port;
    stream_.Send(port, nullptr);
    return port;
  }
  void Open(std::uint64_t next = 0, std::uint64_t released = 0, std::uint64_t capacity = 16) {
    stream_.On(wire::RowsOpened{kPath, 7, next, released, capacity});
  }
  void Ack(std::uint64_t next, std::uint64_t released, bool closed = false,
           std::uint64_t answered = 0) {
    stream_.On(wire::StreamAck{7, next, released, closed}, answered);
  }
  void Ping(std::uint64_t number) { stream_.SetPace({.pings = number}); }

  FakeClock clock_;
  CountingRing ring_{8};
  RowStream stream_{{.path = kPath, .spec_hash = testing::kSpecHash, .batch_bytes = 4 * kRowBytes},
                    ring_.Consumer(),
                    clock_};
};

TEST_F(RowStreamTest, OpensUntilItIsAnswered) {
  const auto opens = Round().All<OpenRows>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].path, kPath);
  EXPECT_EQ(opens[0].row_bytes, kRowBytes);
  EXPECT_EQ(opens[0].oldest, 0U);
  EXPECT_TRUE(Round().sent.empty()) << "not at once again";
  clock_.AdvanceMs(200);
  EXPECT_EQ(Round().All<OpenRows>().size(), 1U);
  Open();
  clock_.AdvanceMs(200);
  EXPECT_TRUE(Round().sent.empty());
  EXPECT_EQ(stream_.stream(), 7U);
}

TEST_F(RowStreamTest, OpeningAndClosingThatFoundNoRoomAreSaidAsSoonAsThereIsSome) {
  RecordingPort full;
  full.room = 0;
  stream_.Send(full, nullptr);
  EXPECT_EQ(Round().All<OpenRows>().size(), 1U);
  ring_.Close();
  Open();
  stream_.Send(full, nullptr);
  EXPECT_EQ(Round().All<CloseRows>().size(), 1U);
}

TEST_F(RowStreamTest, RowsGoOutInBatchesAndStayUntilTheyAreReleased) {
  ring_.Write(6);
  Open();
  const RecordingPort port = Round();
  const auto batches = port.All<RowBatch>();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].count, 4U);
  EXPECT_EQ(batches[1].first, 4U);
  EXPECT_EQ(batches[1].count, 2U);
  EXPECT_EQ(NumberAt(port.sent[1].payload, 1), 5U);
  EXPECT_EQ(ring_.released(), 0U);
  Ack(6, 0);
  EXPECT_EQ(ring_.released(), 0U) << "received is not released";
  Ack(6, 4);
  EXPECT_EQ(ring_.released(), 4U);
  EXPECT_EQ(stream_.unacknowledged(), 2U);
  EXPECT_EQ(stream_.stats().rows, 6U);
  EXPECT_EQ(stream_.stats().bytes, 6 * kRowBytes);
}

TEST_F(RowStreamTest, NothingBeyondTheLearnersRoomIsSent) {
  ring_.Write(8);
  Open(0, 0, /*capacity=*/3);
  EXPECT_EQ(Round().All<RowBatch>().at(0).count, 3U);
  Ack(3, 0);
  EXPECT_TRUE(Round().sent.empty());
  Ack(3, 2);
  const auto batches = Round().All<RowBatch>();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].first, 3U);
  EXPECT_EQ(batches[0].count, 2U);
}

TEST_F(RowStreamTest, FullSocketLosesNothing) {
  ring_.Write(6);
  Open();
  RecordingPort narrow;
  narrow.room = 1;
  stream_.Send(narrow, nullptr);
  EXPECT_EQ(narrow.All<RowBatch>().size(), 1U);
  EXPECT_EQ(Round().All<RowBatch>().at(0).first, 4U);
}

TEST_F(RowStreamTest, RowsMissingFromTheAnswerToALaterPingAreSentAgain) {
  ring_.Write(2);
  Open();
  Ping(1);
  EXPECT_EQ(Round().All<RowBatch>().size(), 1U);
  Ack(0, 0, false, /*answered=*/1);
  EXPECT_TRUE(Round().sent.empty()) << "that ping was sent before the rows";
  Ping(2);
  EXPECT_TRUE(Round().sent.empty());
  ring_.Write(1);
  EXPECT_EQ(Round().All<RowBatch>().at(0).first, 2U);
  Ack(0, 0, false, /*answered=*/2);
  const auto again = Round().All<RowBatch>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].first, 0U);
  EXPECT_EQ(again[0].count, 3U);
  EXPECT_EQ(stream_.stats().resent, 3U);
  EXPECT_EQ(stream_.stats().rows, 3U);
}

TEST_F(RowStreamTest, RowsAreNotSentAgainForTimeAloneOrForPingsOfAnotherConnection) {
  ring_.Write(4);
  Open();
  Ping(1);
  Round();
  Ping(2);
  for (int i = 0; i < 100; ++i) {
    clock_.AdvanceMs(1000);
    Ack(2, 0, false, 1);  // slow, and it lives
    EXPECT_TRUE(Round().sent.empty());
  }
  stream_.Reopen();
  clock_.AdvanceMs(1000);
  Round();
  Open(2, 0);
  EXPECT_EQ(Round().All<RowBatch>().size(), 1U);
  Ack(2, 0, false, 2);
  EXPECT_TRUE(Round().sent.empty()) << "the rows were sent after that ping";
}

// A learner that has every row it has room for, and dies, is never sent one it could answer.
TEST_F(RowStreamTest, StreamThatTheLearnerDoesNotMentionIsOpenedAnew) {
  ring_.Write(4);
  Open(0, 0, /*capacity=*/4);
  Round();
  Ack(4, 0);
  clock_.AdvanceMs(1999);
  EXPECT_TRUE(Round().sent.empty());
  Ack(4, 0);
  clock_.AdvanceMs(1999);
  EXPECT_TRUE(Round().sent.empty()) << "it was mentioned";
  clock_.AdvanceMs(1);
  EXPECT_EQ(Round().All<OpenRows>().size(), 1U);
}

TEST_F(RowStreamTest, NewConnectionResendsFromWhatTheLearnerHas) {
  ring_.Write(6);
  Open();
  Round();
  Ack(2, 1);
  stream_.Reopen();
  EXPECT_EQ(stream_.stream(), 0U);
  EXPECT_EQ(Round().All<OpenRows>().at(0).oldest, 1U);
  Open(/*next=*/4, /*released=*/3);
  const auto batches = Round().All<RowBatch>();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].first, 4U);
  EXPECT_EQ(ring_.released(), 3U);
}

TEST_F(RowStreamTest, NewLearnerBeginsAtTheOldestRow) {
  ring_.Write(6);
  Open();
  Round();
  Ack(6, 2);
  stream_.OnUnknown();
  EXPECT_EQ(Round().All<OpenRows>().at(0).oldest, 2U);
  stream_.On(wire::RowsOpened{kPath, 9, 2, 2, 16});
  const auto batches = Round().All<RowBatch>();
  EXPECT_EQ(batches.at(0).stream, 9U);
  EXPECT_EQ(batches.at(0).first, 2U);
  EXPECT_EQ(stream_.stats().resent, 4U);
}

TEST_F(RowStreamTest, AnswersThatItsRowsCannotHaveLedToChangeNothing) {
  ring_.Write(4);
  for (const auto& [next, released] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 0}, {0, 1}, {~0ULL, ~0ULL}}) {
    Open(next, released);
    EXPECT_EQ(stream_.stream(), 0U);
  }
  Open(0, 0, /*capacity=*/0);
  EXPECT_EQ(stream_.stream(), 0U);
  Open();
  Round();
  Ack(5, 0);
  Ack(4, 5);
  EXPECT_EQ(ring_.released(), 0U);
  EXPECT_EQ(stream_.stats().impossible, 6U);
  stream_.On(wire::StreamAck{8, 4, 4, true}, 0);
  EXPECT_EQ(ring_.released(), 0U) << "another stream's";
}

TEST_F(RowStreamTest, IsDoneWhenTheLearnerHasEveryRowAndKnowsTheEnd) {
  ring_.Write(2);
  ring_.Close();
  Open();
  const RecordingPort port = Round();
  EXPECT_EQ(port.All<RowBatch>().size(), 1U);
  EXPECT_EQ(port.All<CloseRows>().at(0).end, 2U);
  Ack(1, 1);
  EXPECT_FALSE(stream_.done());
  clock_.AdvanceMs(200);
  EXPECT_EQ(Round().All<CloseRows>().size(), 1U) << "said again until it is answered";
  Ack(2, 1, /*closed=*/true);
  EXPECT_TRUE(stream_.done());
  clock_.AdvanceMs(1000);
  EXPECT_TRUE(Round().sent.empty());
}

TEST_F(RowStreamTest, LearnerThatHasForgottenAnEndedStreamHadAllOfIt) {
  ring_.Write(2);
  ring_.Close();
  Open();
  Round();
  Ack(2, 2);
  stream_.OnUnknown();
  EXPECT_TRUE(stream_.done());
}

TEST_F(RowStreamTest, PackedRowsUnpackToTheSame) {
  wire::RowsPacker packer;
  ring_.Write(4);
  Open();
  RecordingPort port;
  stream_.Send(port, &packer);
  const auto batch = port.All<RowBatch>().at(0);
  EXPECT_EQ(batch.packing, wire::RowsPacking::kZstd);
  EXPECT_EQ(stream_.stats().bytes, port.sent[0].payload.size());
  std::vector<std::byte> rows(4 * kRowBytes);
  ASSERT_TRUE(packer.Unpack(batch.packing, port.sent[0].payload, rows));
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(NumberAt(rows, i), i);
}

}  // namespace
}  // namespace tetrion::actor
