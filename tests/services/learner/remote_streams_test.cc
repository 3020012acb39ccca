#include "services/learner/remote_streams.h"

#include <gmock/gmock.h>

#include "tests/services/learner/remote_fixture.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;

using RemoteStreamsTest = RemoteFixture;

TEST_F(RemoteStreamsTest, RingIsOpenedOnceItIsListedAtTheActorsOldestRow) {
  Say(OpenOf(5));
  EXPECT_FALSE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr("not told"));
  const std::uint64_t stream = OpenListed(5);
  const auto opened = Last<wire::RowsOpened>();
  EXPECT_EQ(opened.path, wire::RemoteRingPath(kProcess, 1));
  EXPECT_EQ(opened.next, 5U);
  EXPECT_EQ(opened.released, 5U);
  EXPECT_EQ(opened.capacity, kCapacity);
  EXPECT_EQ(agent_->counters().rings.load(), 1U);
  SayRows(stream, 5, 3);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 3U);
  Say(OpenOf(6));  // after a reconnect
  EXPECT_EQ(Last<wire::RowsOpened>().stream, stream);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 8U);
  EXPECT_EQ(Last<wire::RowsOpened>().released, 8U);
}

TEST_F(RemoteStreamsTest, RowsCountAsReleasedOnlyOnceTheReplayHasThem) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 4);
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 4, 0, false}));
  EXPECT_TRUE(streams_here_->AwaitsRelease());
  EXPECT_EQ(RowsIn(0), 0U);
  Cycle(1);
  EXPECT_EQ(RowsIn(0), 4U);
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 4, 4, false}));
  EXPECT_FALSE(streams_here_->AwaitsRelease());
  said_.clear();
  Tick();
  EXPECT_TRUE(said_.empty()) << "a release is told once";
}

TEST_F(RemoteStreamsTest, RowsThatCameBeforeAreDroppedAndAnsweredWithNext) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 4);
  SayRows(stream, 0, 4);
  SayRows(stream, 2, 4);
  Tick();
  EXPECT_EQ(Acked().next, 6U);
  EXPECT_EQ(counters().rows.load(), 6U);
  EXPECT_EQ(counters().duplicates.load(), 6U);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 6U);
  EXPECT_TRUE(board_.Ended().empty()) << TheEnded().reason;
  Tick();
  said_.clear();
  SayRows(stream, 0, 4);
  Tick();
  EXPECT_EQ(Acked().next, 6U) << "an answer, although nothing moved";
}

TEST_F(RemoteStreamsTest, RowsBehindAGapAreDroppedAndAnsweredWithNext) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 2);
  SayRows(stream, 3, 2);
  Tick();
  EXPECT_EQ(Acked().next, 2U);
  EXPECT_EQ(counters().gaps.load(), 2U);
  SayRows(stream, 2, 3);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 5U);
  EXPECT_TRUE(board_.Ended().empty()) << TheEnded().reason;
}

TEST_F(RemoteStreamsTest, RingsCapacityIsAllTheCreditThereIs) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, kCapacity + 3);
  SayRows(stream, kCapacity, 1);
  Tick();
  EXPECT_EQ(Acked().next, kCapacity);
  EXPECT_EQ(counters().beyond.load(), 4U);
  Cycle(2);
  SayRows(stream, kCapacity, 3);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), kCapacity + 3);
}

TEST_F(RemoteStreamsTest, PackedRowsArriveAsTheyWere) {
  const std::uint64_t stream = OpenListed();
  wire::RowsPacker packer;
  std::vector<std::byte> packed;
  ASSERT_EQ(packer.Pack(RemoteRows(layout_, 1, 0, 8), packed), wire::RowsPacking::kZstd);
  Say(wire::RowBatch{stream, 0, 8, wire::RowsPacking::kZstd}, packed);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 8U);
  EXPECT_EQ(counters().payload_bytes.load(), packed.size());
  EXPECT_EQ(counters().bytes.load(), 8 * layout_.row_bytes);
}

TEST_F(RemoteStreamsTest, EveryActorIsAnsweredFiveTimesASecondAndAPingAtOnce) {
  const std::uint64_t stream = OpenListed();
  Tick();
  said_.clear();
  Tick(3);
  EXPECT_TRUE(said_.empty());
  clock_.AdvanceMs(200);
  Say(wire::WeightsGet{});  // heard, no more
  Tick(3);
  ASSERT_EQ(said_.size(), 1U);
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 0, 0, false}));
  EXPECT_EQ(Last<wire::RowsAck>().weights_version, 3U);
  Say(wire::RowsPing{4});
  Tick(3);
  EXPECT_EQ(said_.size(), 2U);
  EXPECT_EQ(Last<wire::RowsAck>().answered, 4U);
  Say(wire::RowsPing{3});  // of a connection before
  Tick(3);
  EXPECT_EQ(Last<wire::RowsAck>().answered, 4U);
}

TEST_F(RemoteStreamsTest, AnswersGoToTheConnectionTheActorWasLastHeardOn) {
  const std::uint64_t stream = OpenListed();
  streams_here_->On("later", {.run_id = kRun, .process = kProcess}, wire::RowsPing{}, {});
  Tick();
  EXPECT_EQ(said_.back().first, "later");
  EXPECT_EQ(Acked().stream, stream);
}

TEST_F(RemoteStreamsTest, StreamThatIngestGaveUpIsUnknownAtOnce) {
  const std::uint64_t stream = OpenListed();
  const std::vector<std::byte> spoilt(2 * layout_.row_bytes, std::byte{0xff});
  Say(wire::RowBatch{stream, 0, 2, wire::RowsPacking::kNone}, spoilt);
  Cycle(2);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kQuarantined);
  Say(OpenOf(0));
  EXPECT_FALSE(Last<wire::OpenRefused>().final);
  SayRows(stream, 0, 3);
  EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
  Say(wire::CloseRows{stream, 2});
  Tick();
  EXPECT_EQ(counters().streams.load(), 0U);
}

TEST_F(RemoteStreamsTest, StreamIsClosedOnceEveryRowBeforeItsEndIsThere) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 2);
  Say(wire::CloseRows{stream, 3});
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 2, 0, false}));
  SayRows(stream, 2, 1);
  Say(wire::CloseRows{stream, 3});
  Cycle(3);
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 3, 3, true}));
  EXPECT_EQ(RowsIn(0), 3U);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kClosed);
  said_.clear();
  Say(wire::CloseRows{stream, 3});  // the answer was lost
  SayRows(stream, 2, 1);
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 3, 3, true}));
  EXPECT_EQ(counters().streams.load(), 0U);
}

TEST_F(RemoteStreamsTest, RowsBehindTheEndOfAClosedStreamAreDropped) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 2);
  Say(wire::CloseRows{stream, 2});
  SayRows(stream, 2, 1);
  EXPECT_EQ(counters().rows.load(), 2U);
  Cycle(3);
  Tick();  // the ring is gone
  SayRows(stream, 2, 1);
  Tick();
  EXPECT_EQ(Acked(), (wire::StreamAck{stream, 2, 2, true}));
  EXPECT_EQ(RowsIn(0), 2U);
}

TEST_F(RemoteStreamsTest, WhatCannotBeEndsTheStreamForGood) {
  const std::vector<std::byte> rows(2 * layout_.row_bytes);
  const std::vector<std::pair<wire::RowsMessage, std::size_t>> impossible = {
      {wire::RowBatch{0, 2, 2, wire::RowsPacking::kNone}, rows.size() - 1},
      {wire::RowBatch{0, 2, 2, wire::RowsPacking::kNone}, 0},
      {wire::RowBatch{0, 2, 2, wire::RowsPacking::kZstd}, rows.size()},
      {wire::RowBatch{0, 2, 0xffffffff, wire::RowsPacking::kNone}, rows.size()},
      {wire::CloseRows{0, 1}, 0},
      {OpenOf(3), 0}};
  for (const auto& [message, bytes] : impossible) {
    SCOPED_TRACE(message.index());
    Restart();
    board_.ForgetEndedExcept({});
    const std::uint64_t stream = OpenListed();
    SayRows(stream, 0, 2);
    Cycle(2);
    wire::RowsMessage bad = message;
    if (auto* batch = std::get_if<wire::RowBatch>(&bad)) batch->stream = stream;
    if (auto* close = std::get_if<wire::CloseRows>(&bad)) close->stream = stream;
    Say(bad, std::span(rows).first(bytes));
    EXPECT_EQ(counters().broken.load(), 1U);
    Cycle(2);
    EXPECT_EQ(TheEnded().end, wire::RingEnd::kQuarantined);
    EXPECT_FALSE(TheEnded().reason.empty());
    SayRows(stream, 2, 1);
    EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
    EXPECT_EQ(RowsIn(0), 2U);
  }
}

TEST_F(RemoteStreamsTest, RowThatIngestRefusesEndsTheStreamForGood) {
  const std::uint64_t stream = OpenListed();
  Say(wire::RowBatch{stream, 0, 1, wire::RowsPacking::kNone}, RemoteRow(layout_, 1, 7));
  Cycle(2);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kQuarantined);
  Tick();
  SayRows(stream, 1, 1);
  EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
}

TEST_F(RemoteStreamsTest, RowsOfAnotherKindAreRefusedForGoodWithBothValues) {
  ListRemote();
  Cycle(2);
  wire::OpenRows open = OpenOf(0);
  open.row_bytes += 64;
  Say(open);
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr(std::to_string(layout_.row_bytes)));
  Cycle(2);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kUnattachable);
  EXPECT_THAT(TheEnded().reason, HasSubstr("size of a row"));
}

TEST_F(RemoteStreamsTest, RowsOfAnotherLayoutAreRefusedForGoodWithBothHashes) {
  ListRemote();
  Cycle(2);
  wire::OpenRows open = OpenOf(0);
  ++open.spec_hash;
  Say(open);
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr(std::to_string(open.spec_hash)));
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr(std::to_string(layout_.Hash())));
}

TEST_F(RemoteStreamsTest, RowsThatNoMessageTakesAreRefusedForGood) {
  ListRemote();
  Cycle(2);
  wire::OpenRows open = OpenOf(0);
  open.row_bytes = wire::kMaxPayloadBytes + 64;
  RemoteStreams streams({.run_id = kRun,
                         .row_bytes = open.row_bytes,
                         .spec_hash = open.spec_hash,
                         .ring_rows = kCapacity},
                        *remote_, Bell(&bell_), *this, clock_);
  streams.On("peer", {.run_id = kRun, .process = kProcess}, open, {});
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr("lower --lanes"));
}

TEST_F(RemoteStreamsTest, AnotherRunAndAnImpossibleRowAreRefusedForGood) {
  ListRemote();
  Cycle(2);
  streams_here_->On("peer", {.run_id = kRun + 1, .process = kProcess}, OpenOf(0), {});
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr("its run is 78"));
  Say(OpenOf(~0ULL));
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  EXPECT_THAT(Last<wire::OpenRefused>().text, HasSubstr("impossible"));
}

TEST_F(RemoteStreamsTest, OtherProcessesCannotTouchAStream) {
  const std::uint64_t stream = OpenListed();
  Say(OpenOf(0), {}, kProcess + 1);
  EXPECT_TRUE(Last<wire::OpenRefused>().final);
  Say(wire::RowBatch{stream, 0, 1, wire::RowsPacking::kNone}, RemoteRow(layout_, 1, 0),
      kProcess + 1);
  EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
  Say(wire::CloseRows{stream, 0}, {}, kProcess + 1);
  streams_here_->On("peer", {.run_id = kRun + 1, .process = kProcess}, wire::CloseRows{stream, 0},
                    {});
  Cycle(2);
  EXPECT_EQ(counters().rows.load(), 0U);
  EXPECT_TRUE(board_.Ended().empty());
}

TEST_F(RemoteStreamsTest, RestartedLearnerKnowsNoStreamAndBeginsAtTheActorsOldestRow) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 6);
  Cycle(2);
  Restart();
  SayRows(stream, 6, 1);
  EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
  const std::uint64_t again = OpenListed(4);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 4U);
  SayRows(again, 4, 3);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 3U);
}

}  // namespace
}  // namespace tetrion::learner
