#include "services/learner/ring_attacher.h"

#include <gmock/gmock.h>

#include "lib/inference/env_end.h"
#include "lib/wire/remote_path.h"
#include "tests/services/learner/ingest_fixture.h"
#include "tests/support/no_open_files.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The attacher within its agent: a cycle of the fixture is 60 ms, so 40 are more than the retry
// time and 10 are less.
class RingAttacherTest : public IngestFixture {
 protected:
  // What the first list names may be of an earlier learner's time.
  void PassTheFirstList() {
    List({});
    Cycle(1);
  }
  EndedRing TheEnded() {
    const std::vector<EndedRing> ended = board_.Ended();
    EXPECT_EQ(ended.size(), 1U);
    return ended.empty() ? EndedRing{} : ended[0];
  }
};

// Of a learner that takes the rows of other hosts.
class RemoteRingAttacherTest : public RingAttacherTest {
 protected:
  RemoteRingAttacherTest() {
    remote_board_ = &remote_;
    Build();
  }
  const std::string path_ = wire::RemoteRingPath(7, 0);
  RemoteBoard remote_;
};

TEST_F(RingAttacherTest, MissingRingIsWaitedForThenGivenUpWithTheRemedyWhileOthersAreServed) {
  auto good = MakeWorker(2);
  const std::string missing = TestWorker::PathOf(dir_.path(), 1);
  PassTheFirstList();
  List({{missing, 0}, {good->path(), 1}});
  good->Write(4);
  Cycle(10);
  EXPECT_TRUE(board_.Ended().empty());
  EXPECT_EQ(attacher_->waiting(), 1U);
  EXPECT_EQ(RowsIn(1), 4U);
  Cycle(40);
  EXPECT_EQ(TheEnded().path, missing);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kUnattachable);
  EXPECT_THAT(TheEnded().reason, HasSubstr("give both the same --shm-dir"));
  EXPECT_LE(TheEnded().reason.size(), wire::kMaxReasonBytes);
  EXPECT_EQ(attacher_->waiting(), 0U);
  EXPECT_EQ(attacher_->given_up(), 1U);
  EXPECT_EQ(agent_->counters().quarantined.load(), 0U);
}

// Everything was killed, and what holds no lock was removed.
TEST_F(RingAttacherTest, RingOfTheFirstListWithoutAFileIsThatOfADeadActor) {
  List({{TestWorker::PathOf(dir_.path(), 1), 0}});
  Cycle(1);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead);
  EXPECT_EQ(attacher_->given_up(), 0U);
}

TEST_F(RingAttacherTest, LearnerThatTakesNoRingsSaysWhyToEachAtOnce) {
  refused_ = "the learner plays its lanes itself";
  Build();
  auto worker = MakeWorker(1);
  worker->Write(3);
  List({{worker->path(), 0}});
  Cycle(1);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kUnattachable);
  EXPECT_EQ(TheEnded().reason, refused_);
  EXPECT_EQ(RowsIn(0), 0U);
  EXPECT_TRUE(std::filesystem::exists(worker->path())) << "its producer lives";
}

TEST_F(RingAttacherTest, RingThatComesWithinTheRetryTimeIsAttached) {
  PassTheFirstList();
  List({{TestWorker::PathOf(dir_.path(), 1), 0}});
  Cycle(10);
  auto worker = MakeWorker(1);
  worker->Write(3);
  Cycle(10);
  EXPECT_EQ(RowsIn(0), 3U);
  EXPECT_TRUE(board_.Ended().empty());
}

TEST_F(RingAttacherTest, RingThatIsNotSealedYetIsWaitedFor) {
  const std::string path = TestWorker::PathOf(dir_.path(), 1);
  std::optional<Region> half_made =
      Region::Create(dir_.path(), RingName(kRun, 1, 1, 1), RegionKind::kRing, 8192, kRun, 1);
  List({{path, 0}});
  Cycle(10);
  EXPECT_TRUE(board_.Ended().empty());
  Cycle(40);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kUnattachable);
  EXPECT_THAT(TheEnded().reason, HasSubstr("not sealed"));
  EXPECT_THAT(TheEnded().reason, Not(HasSubstr(dir_.path())));  // the path stands beside it
  EXPECT_TRUE(std::filesystem::exists(path));                   // its creator lives
}

TEST_F(RingAttacherTest, WantOfOpenFilesIsWaitedForAndNamed) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  auto worker = MakeWorker(1);
  worker->Write(2);
  List({{worker->path(), 0}});
  {
    const testing::NoOpenFiles none;
    Cycle(100);  // longer than a ring may be missing
  }
  EXPECT_TRUE(board_.Ended().empty());
  Cycle(10);
  EXPECT_EQ(RowsIn(0), 2U);
  EXPECT_TRUE(board_.Ended().empty());
}

TEST_F(RingAttacherTest, RingOfAnotherLayoutOrRunIsGivenUpAtOnceAndStaysWhileItsActorLives) {
  const RowLayout other({.record_bytes = 32, .lanes = 2, .has_mask = false});
  TestWorker wide(dir_.path(), other, 1);
  TestWorker stranger(dir_.path(), layout_, 2, 256, kRun + 1);
  List({{wide.path(), 0}, {stranger.path(), 1}});
  Cycle(1);
  ASSERT_EQ(board_.Ended().size(), 2U);
  for (const EndedRing& ended : board_.Ended()) {
    EXPECT_EQ(ended.end, wire::RingEnd::kUnattachable);
    EXPECT_THAT(ended.reason, HasSubstr("is needed"));
  }
  EXPECT_EQ(agent_->counters().rings.load(), 0U);
  EXPECT_TRUE(std::filesystem::exists(wide.path()));
  EXPECT_TRUE(std::filesystem::exists(stranger.path()));
}

// The header names the run's layout, and sizes that the layout has not; the file has room for them.
TEST_F(RingAttacherTest, RingWithRowsOfAnotherSizeIsGivenUpWithBothSizesAndNotRead) {
  auto narrower = MakeWorker(1), unaligned = MakeWorker(2);
  narrower->Write(3);
  unaligned->Write(3);
  narrower->block().record_bytes = layout_.row_bytes - 64;
  unaligned->block().record_bytes = layout_.row_bytes - 1;
  List({{narrower->path(), 0}, {unaligned->path(), 1}});
  Cycle(1);
  ASSERT_EQ(board_.Ended().size(), 2U);
  const std::string needed = " bytes, the run's have " + std::to_string(layout_.row_bytes);
  for (const EndedRing& ended : board_.Ended()) {
    EXPECT_EQ(ended.end, wire::RingEnd::kUnattachable);
    EXPECT_THAT(ended.reason, HasSubstr(needed));
    EXPECT_THAT(ended.reason, HasSubstr("restart its actor"));
  }
  EXPECT_THAT(board_.Ended()[0].reason, HasSubstr(std::to_string(layout_.row_bytes - 64)));
  EXPECT_EQ(RowsIn(0) + RowsIn(1), 0U);
}

TEST_F(RingAttacherTest, UnattachableRingOfADeadOwnerIsRemovedAndAnotherRunsIsNot) {
  const RowLayout other({.record_bytes = 32, .lanes = 2, .has_mask = false});
  PassTheFirstList();
  const std::string wide = TestWorker::PathOf(dir_.path(), 1);
  const std::string stranger = TestWorker::PathOf(dir_.path(), 2, kRun + 1);
  {
    TestWorker worker(dir_.path(), other, 1);
  }
  {
    TestWorker worker(dir_.path(), layout_, 2, 256, kRun + 1);
  }
  List({{wide, 0}, {stranger, 1}});
  {
    const ShmDirLock lock(dir_.path());
    Cycle(2);
    EXPECT_EQ(board_.Ended().size(), 2U);
    EXPECT_TRUE(std::filesystem::exists(wide));
  }
  Cycle(2);
  EXPECT_FALSE(std::filesystem::exists(wide));
  EXPECT_TRUE(std::filesystem::exists(stranger));
}

TEST_F(RingAttacherTest, SlotOutsideTheReplayIsGivenUpAtOnce) {
  auto below = MakeWorker(1), above = MakeWorker(2);
  List({{below->path(), -1}, {above->path(), 3}});
  Cycle(1);
  ASSERT_EQ(board_.Ended().size(), 2U);
  EXPECT_EQ(board_.Ended()[1].end, wire::RingEnd::kUnattachable);
  EXPECT_EQ(board_.Ended()[1].reason, "its slot is 3, the replay has 3");
  EXPECT_TRUE(std::filesystem::exists(above->path()));
}

TEST_F(RingAttacherTest, GivenUpRingIsNotTriedAgainUntilItWasOffTheList) {
  const std::string missing = TestWorker::PathOf(dir_.path(), 1);
  PassTheFirstList();
  List({{missing, 0}});
  Cycle(40);
  EXPECT_EQ(attacher_->given_up(), 1U);
  List({{missing, 0}});  // the coordinator has not heard yet
  Cycle(40);
  EXPECT_EQ(attacher_->given_up(), 1U);
}

TEST_F(RingAttacherTest, StreamIsAttachedAsAnInferredRingAndInferenceIsTold) {
  EnvEnd::Ends stream =
      EnvEnd::Create(dir_.path(), StreamName(kRun, 1, 1, 5), kRun, {layout_, 64}, kActions);
  const std::string path = stream.obs.region()->path();
  const auto write_row = [&stream] {
    stream.obs.Claim().Complete();
    stream.obs.Publish();
  };
  {
    RingConsumer before =
        RingConsumer::Attach(path, layout_.Hash(), {.run_id = kRun}, RegionKind::kStream);
    write_row();
    ASSERT_EQ(before.Peek().count, 1U);
    before.Release(1);  // by a learner that is gone
  }
  write_row();
  board_.SetList(1, {{.path = path, .worker = 5, .slot = 2, .session = 9}});

  const std::vector<std::unique_ptr<RowSource>> found = attacher_->Poll();
  ASSERT_EQ(found.size(), 1U);
  RowSource& ring = *found[0];
  EXPECT_NE(dynamic_cast<InferredRing*>(&ring), nullptr);
  EXPECT_EQ(ring.id().session, 9U);
  EXPECT_EQ(ring.id().worker, 5U);
  EXPECT_EQ(ring.id().shard, 2);
  EXPECT_EQ(ring.id().address, path);
  const std::vector<std::shared_ptr<StreamShare>> told = streams_.Take();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0]->path, path);
  EXPECT_EQ(told[0]->first, 1U) << "where the ring's tail stands";
  EXPECT_EQ(told[0]->answered, 1U);
  EXPECT_EQ(ring.Peek().state, SourceState::kNone) << "nothing is answered";
  told[0]->answered = 2;
  EXPECT_EQ(ring.Peek().count, 1U) << "both hold the same share";
  EXPECT_TRUE(attacher_->Poll().empty());
  EXPECT_TRUE(streams_.Take().empty());
}

TEST_F(RingAttacherTest, PlainRingIsAttachedAsALocalRingAndInferenceIsNotTold) {
  auto worker = MakeWorker(4);
  board_.SetList(1, {{.path = worker->path(), .worker = 4, .slot = 1, .session = 8}});
  const std::vector<std::unique_ptr<RowSource>> found = attacher_->Poll();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(dynamic_cast<LocalRing*>(found[0].get()), nullptr);
  EXPECT_EQ(found[0]->id().session, 8U);
  EXPECT_EQ(found[0]->id().shard, 1);
  EXPECT_TRUE(streams_.Take().empty());
}

TEST_F(RingAttacherTest, RingThatLeavesTheListIsNotWaitedFor) {
  PassTheFirstList();
  List({{TestWorker::PathOf(dir_.path(), 1), 0}});
  Cycle(5);
  List({});
  Cycle(40);
  EXPECT_TRUE(board_.Ended().empty());
  EXPECT_EQ(attacher_->waiting(), 0U);
}

TEST_F(RingAttacherTest, RemoteRingOfALearnerThatTakesNoneNamesTheOptionAtOnce) {
  List({{wire::RemoteRingPath(7, 0), 0}});
  Cycle(1);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kUnattachable);
  EXPECT_THAT(TheEnded().reason, HasSubstr("--rows-bind tcp://0.0.0.0:9001"));
}

TEST_F(RemoteRingAttacherTest, RemoteRingThatIsNeverOpenedCountsAsDeadAfterTheSilence) {
  List({{path_, 0}});
  Cycle(900);  // 54 s
  EXPECT_TRUE(board_.Ended().empty());
  EXPECT_TRUE(remote_.Expects(path_));
  EXPECT_EQ(attacher_->waiting(), 1U);
  Cycle(200);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead) << "its actor may come back";
  EXPECT_THAT(TheEnded().reason, HasSubstr("never opened it"));
  EXPECT_FALSE(remote_.Expects(path_));
  EXPECT_EQ(attacher_->given_up(), 0U);
}

TEST_F(RemoteRingAttacherTest, TimeInWhichTheLearnerItselfStoodStillOpensNoRing) {
  List({{path_, 0}});
  Cycle(1);
  clock_.AdvanceMs(3'600'000);
  Cycle(900);  // 54 s
  EXPECT_TRUE(board_.Ended().empty());
  EXPECT_TRUE(remote_.Expects(path_));
  Cycle(200);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead);
}

TEST_F(RemoteRingAttacherTest, RemoteRingThatWasNotOpenedWhenItsOwnersSessionEndedIsNotWaitedFor) {
  board_.SetList(++revision_, {{.path = path_, .slot = 0, .session = 2, .owner = 2}});
  Cycle(10);
  EXPECT_TRUE(remote_.Expects(path_));
  EXPECT_FALSE(remote_.Ownerless(path_));
  board_.SetList(++revision_, {{.path = path_, .slot = 0, .session = 0, .owner = 2}});
  Cycle(2);
  EXPECT_EQ(TheEnded().end, wire::RingEnd::kOwnerDead) << "its actor may come back";
  EXPECT_THAT(TheEnded().reason, HasSubstr("its actor's session ended"));
  EXPECT_EQ(TheEnded().owner, 2U);
  EXPECT_TRUE(remote_.Ownerless(path_));
  EXPECT_FALSE(remote_.Expects(path_));
}

// Path and owner name a ring: the coordinator may list the same path for the actor's next session
// before it has heard that the ring was given up.
TEST_F(RemoteRingAttacherTest, PathThatALaterSessionOwnsIsANewRing) {
  const auto list = [&](std::uint64_t owner) {
    board_.SetList(++revision_, {{.path = path_, .slot = 0, .session = owner, .owner = owner}});
  };
  list(1);
  Cycle(1100);
  EXPECT_EQ(TheEnded().owner, 1U);
  list(1);  // not heard yet
  Cycle(2);
  EXPECT_FALSE(remote_.Expects(path_));
  list(2);
  Cycle(2);
  EXPECT_TRUE(remote_.Expects(path_));
  list(3);  // given up and announced again while it waited: it waits from now
  Cycle(900);
  EXPECT_TRUE(remote_.Expects(path_));
  Cycle(200);
  ASSERT_EQ(board_.Ended().size(), 2U);
  EXPECT_EQ(board_.Ended()[1].owner, 3U);
}

TEST_F(RingAttacherTest, LocalRingThatIsClaimedAfterItsEndIsNotAttachedAgain) {
  auto worker = MakeWorker(1);
  board_.SetList(++revision_, {{.path = worker->path(), .slot = 0, .owner = 1}});
  worker->producer().Close();
  Cycle();
  ASSERT_EQ(board_.Ended().size(), 1U);
  const std::vector<wire::RingInfo> claimed = {{.path = worker->path(), .slot = 0, .owner = 4}};
  board_.ForgetEndedExcept(claimed);  // the list from before the end was told
  board_.SetList(++revision_, claimed);
  Cycle(60);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kClosed);
}

TEST_F(RingAttacherTest, RingThatIsClaimedWhileItIsAttachedEndsForItsNewOwner) {
  auto first = MakeWorker(1), second = MakeWorker(2);
  const auto list = [&](std::uint64_t owner) {
    board_.SetList(++revision_, {{.path = first->path(), .slot = 0, .owner = owner},
                                 {.path = second->path(), .slot = 1, .owner = 1}});
  };
  list(1);
  Cycle(2);
  first->Write(3);
  list(4);
  Cycle(2);
  EXPECT_EQ(RowsIn(0), 3U) << "it stays attached";
  first->producer().Close();
  second->producer().Close();
  Cycle(3);
  ASSERT_EQ(board_.Ended().size(), 2U);
  for (const EndedRing& ended : board_.Ended()) {
    EXPECT_EQ(ended.end, wire::RingEnd::kClosed);
    EXPECT_EQ(ended.owner, ended.path == first->path() ? 4U : 1U);
  }
}

TEST_F(RemoteRingAttacherTest, RemoteRingThatIsListedNoMoreIsExpectedNoMore) {
  List({{path_, 0}});
  Cycle(2);
  EXPECT_TRUE(remote_.Expects(path_));
  List({});
  Cycle(2);
  EXPECT_FALSE(remote_.Expects(path_));
  EXPECT_TRUE(board_.Ended().empty());
}

}  // namespace
}  // namespace tetrion::learner
