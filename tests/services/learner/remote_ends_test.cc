#include <gtest/gtest.h>

#include "services/learner/remote_streams.h"
#include "tests/services/learner/remote_fixture.h"

// How streams end, by silence or closed, and where the next one of the same ring begins.
namespace tetrion::learner {
namespace {

class RemoteEndsTest : public RemoteFixture {
 protected:
  void PassInSilence(int seconds = 60) {
    Tick();
    for (int s = 0; s < seconds; ++s) {
      clock_.AdvanceMs(1000);
      Tick();
    }
  }
  // The coordinator takes the ring off its list; the actor registers it anew.
  void Relist() {
    board_.ForgetEndedExcept({});
    List({});
    Cycle(1);
    ListRemote();
    Cycle(2);
  }
};

TEST_F(RemoteEndsTest, SilentActorIsDeadOnceItsRowsAreInAndMayComeBack) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 3);
  Tick();
  for (int s = 0; s < 59; ++s) {
    clock_.AdvanceMs(1000);
    Tick();
  }
  EXPECT_EQ(counters().silent.load(), 0U);
  clock_.AdvanceMs(1000);
  Tick();
  EXPECT_EQ(counters().silent.load(), 1U);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 3U);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead);
  SayRows(stream, 3, 1);
  EXPECT_EQ(Last<wire::StreamUnknown>().stream, stream);
  // The coordinator took it off its list; the actor registers its ring anew.
  List({});
  board_.ForgetEndedExcept({});
  Cycle(1);
  const std::uint64_t again = OpenListed(2);
  EXPECT_NE(again, stream);
  EXPECT_EQ(Last<wire::RowsOpened>().released, 3U) << "what was taken does not come again";
  SayRows(again, 2, 2);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 4U);
  EXPECT_TRUE(board_.Ended().empty());
}

// Ingest forgets a stream that it has not taken, and its actor may not have heard of it.
TEST_F(RemoteEndsTest, EndIsKnownUntilAStreamThatBeganThereHasEnded) {
  SayRows(OpenListed(), 0, 6);
  PassInSilence();
  Cycle(2);
  ASSERT_EQ(RowsIn(0), 6U);
  Relist();
  Say(OpenOf(2));
  const auto begun = Last<wire::RowsOpened>();
  EXPECT_EQ(begun.next, 6U);
  List({});
  Cycle(2);
  Tick();
  ListRemote();
  EXPECT_NE(OpenAgain(2), begun.stream);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 6U);
}

// The last acknowledgement may be lost: the actor then opens its ring anew with rows that are in.
TEST_F(RemoteEndsTest, ClosedStreamThatIsListedAnewBeginsBehindItsEnd) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 6);
  Say(wire::CloseRows{stream, 6});
  Cycle(3);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kClosed);
  Relist();
  const std::uint64_t again = OpenAgain(2);
  EXPECT_NE(again, stream);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 6U);
  SayRows(again, 2, 4);
  Say(wire::CloseRows{again, 6});
  Cycle(3);
  EXPECT_EQ(RowsIn(0), 6U) << "nothing comes twice";
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kClosed);
}

TEST_F(RemoteEndsTest, ClosedStreamOfASilentActorBeginsBehindItsEnd) {
  const std::uint64_t stream = OpenListed();
  SayRows(stream, 0, 6);
  Say(wire::CloseRows{stream, 6});
  PassInSilence();
  EXPECT_EQ(counters().silent.load(), 0U) << "it had said all";
  Cycle(3);
  EXPECT_EQ(RowsIn(0), 6U) << "its rows are taken all the same";
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kClosed);
  Relist();
  (void)OpenAgain(2);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 6U);
}

// Its ring was listed no longer before ingest took it.
TEST_F(RemoteEndsTest, RowsOfAClosedStreamThatIngestNeverTookAreWantedAgain) {
  ListRemote();
  Cycle(2);
  Say(OpenOf(0));
  const std::uint64_t stream = Last<wire::RowsOpened>().stream;
  SayRows(stream, 0, 6);
  Say(wire::CloseRows{stream, 6});
  List({});
  Cycle(2);
  Relist();
  const std::uint64_t again = OpenAgain(0);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 0U);
  SayRows(again, 0, 6);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 6U);
}

// The coordinator judges by the lease, which a dead host lets run out long before the silence ends.
TEST_F(RemoteEndsTest, SilentActorWhoseSessionHasEndedIsDeadWithoutWaitingForTheSilence) {
  const std::string path = wire::RemoteRingPath(kProcess, 1);
  const auto list = [&](std::uint64_t session, std::uint64_t owner) {
    board_.SetList(++revision_, {{.path = path, .slot = 0, .session = session, .owner = owner}});
    Cycle(1);
  };
  list(3, 3);
  const std::uint64_t stream = OpenAgain(0);
  SayRows(stream, 0, 3);
  const auto pass = [&](int seconds, bool speaks) {
    for (int s = 0; s < seconds; ++s) {
      clock_.AdvanceMs(1000);
      if (speaks) Say(wire::RowsPing{});
      Tick();
    }
  };
  list(0, 3);
  pass(30, /*speaks=*/true);
  EXPECT_EQ(counters().silent.load(), 0U) << "it lives, and will register anew";
  list(4, 4);
  pass(30, /*speaks=*/false);
  EXPECT_EQ(counters().silent.load(), 0U) << "its new session lives";
  list(0, 4);
  Tick();
  EXPECT_EQ(counters().silent.load(), 1U) << "it was silent for longer than ten pings";
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 3U) << "its rows are taken to the last";
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead);
  EXPECT_EQ(TheEnded().owner, 4U);
  // It comes back after all, with the rows that it still has.
  board_.ForgetEndedExcept({});
  list(5, 5);
  const std::uint64_t again = OpenAgain(1);
  EXPECT_NE(again, stream);
  EXPECT_EQ(Last<wire::RowsOpened>().next, 3U);
  SayRows(again, 1, 4);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 5U) << "nothing comes twice";
}

// The rows that a silent actor left are taken after it has come back: the end is not its new
// session's.
TEST_F(RemoteEndsTest, EndOfASilentStreamIsItsOldOwnersAndTheNewOneGoesOnInItsShard) {
  const auto list = [&](std::uint64_t session, std::uint64_t owner) {
    board_.SetList(++revision_, {{.path = wire::RemoteRingPath(kProcess, 1),
                                  .slot = 0,
                                  .session = session,
                                  .owner = owner}});
  };
  list(3, 3);
  SayRows(OpenAgain(0), 0, 3);
  list(0, 3);
  Cycle(1);
  SayRows(Last<wire::RowsOpened>().stream, 3, 3);  // ingest has not taken these
  for (int i = 0; i < 7; ++i) {
    clock_.AdvanceMs(900);
    Tick();
  }
  ASSERT_EQ(counters().silent.load(), 1U);
  list(4, 4);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 6U);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead);
  EXPECT_EQ(TheEnded().owner, 3U);
  board_.ForgetEndedExcept({});
  (void)OpenAgain(4);  // the list did not change: the ring that it names is waited for
  EXPECT_EQ(Last<wire::RowsOpened>().next, 6U);
  EXPECT_TRUE(board_.Ended().empty());
}

TEST_F(RemoteEndsTest, OfManyEndsTheOldestAreForgotten) {
  const auto open = [&](std::uint64_t process) {
    const std::string path = wire::RemoteRingPath(process, 1);
    List({{path, 0}});
    Cycle(1);
    Say(wire::OpenRows{path, layout_.row_bytes, layout_.Hash(), 0}, {}, process);
    Cycle(1);
    return Last<wire::RowsOpened>();
  };
  const auto end_by_silence = [&](std::uint64_t process) {
    Say(wire::RowBatch{open(process).stream, 0, 2, wire::RowsPacking::kNone},
        RemoteRows(layout_, 1, 0, 2), process);
    for (int i = 0; i < 70; ++i) {
      clock_.AdvanceMs(900);
      Tick();
    }
    Cycle(2);  // takes the rows, then sees the end
    List({});
    board_.ForgetEndedExcept({});
    Cycle(1);
  };
  for (const std::uint64_t process : {9, 8, 7, 1}) end_by_silence(process);
  ASSERT_EQ(counters().silent.load(), kEnds + 1);
  EXPECT_EQ(open(1).next, 2U) << "the newest, whose name is the first";
  EXPECT_EQ(open(8).next, 2U);
  EXPECT_EQ(open(9).next, 0U) << "the oldest";
}

TEST_F(RemoteEndsTest, TimeInWhichTheLearnerItselfStoodStillIsNoSilence) {
  (void)OpenListed();
  Tick();
  clock_.AdvanceMs(3'600'000);
  Tick();
  EXPECT_EQ(counters().silent.load(), 0U);
}

// What had piled up meanwhile is read before the first look at who is silent.
TEST_F(RemoteEndsTest, ActorHeardSinceTheLearnerStoodStillIsForgivenNoMoreThanThat) {
  (void)OpenListed();
  Tick();
  clock_.AdvanceMs(3'600'000);
  Say(wire::RowsPing{});
  Tick();
  PassInSilence(59);
  EXPECT_EQ(counters().silent.load(), 0U);
  PassInSilence(1);
  EXPECT_EQ(counters().silent.load(), 1U);
}

TEST_F(RemoteEndsTest, ProcessWhoseOnlyStreamIsGoneIsServedForNoLongerThanTheSilence) {
  const wire::Identity actor = {.run_id = kRun, .process = kProcess};
  const std::uint64_t stream = OpenListed();
  const auto speak = [&](int seconds) {
    for (int s = 0; s < seconds; ++s) {
      clock_.AdvanceMs(1000);
      Say(wire::RowsPing{});
      Tick();
    }
  };
  speak(100);
  EXPECT_TRUE(streams_here_->Serves(actor));
  Say(wire::RowBatch{stream, 0, 1, wire::RowsPacking::kNone}, RemoteRow(layout_, 1, 7));
  Cycle(2);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kQuarantined);
  speak(59);
  EXPECT_TRUE(streams_here_->Serves(actor));
  speak(1);
  EXPECT_FALSE(streams_here_->Serves(actor));
  said_.clear();
  speak(1);
  EXPECT_TRUE(said_.empty()) << "it is told of no weights";
}

}  // namespace
}  // namespace tetrion::learner
