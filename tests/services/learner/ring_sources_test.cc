#include "services/learner/ring_sources.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/services/learner/ingest_fixture.h"

namespace tetrion::learner {
namespace {

using ::testing::HasSubstr;

// Sources over a real ring; time stands still unless a test moves it.
class RingSourcesTest : public ::testing::Test {
 protected:
  RingConsumer Consumer() { return RingConsumer::Attach(path_, layout_.Hash(), {.run_id = kRun}); }
  SourceId Id() { return {.session = 9, .worker = 1, .shard = 2, .address = path_}; }
  LocalRing Local() { return {Id(), Consumer(), clock_}; }
  std::shared_ptr<StreamShare> Share(std::uint64_t first, std::uint64_t answered) {
    auto share = std::make_shared<StreamShare>(path_, 0);
    share->first = first;
    share->answered = answered;
    return share;
  }
  InferredRing Inferred(std::shared_ptr<StreamShare> share) {
    return {Id(), Consumer(), std::move(share), clock_};
  }
  // The owner's lock goes, the file stays: as a kill leaves it.
  void Kill() { worker_.reset(); }

  ScratchDir dir_;
  FakeClock clock_;
  const RowLayout layout_{{.record_bytes = 16, .lanes = 2, .has_mask = false}};
  std::optional<TestWorker> worker_{std::in_place, dir_.path(), layout_, 1, 8};
  const std::string path_ = worker_->path();
};

TEST_F(RingSourcesTest, LocalRingShowsPublishedRowsUntilTheyAreReleased) {
  LocalRing ring = Local();
  EXPECT_EQ(ring.Peek().state, SourceState::kNone);
  EXPECT_FALSE(ring.HasNews());
  worker_->Write(3);
  EXPECT_TRUE(ring.HasNews());
  SourceRows rows = ring.Peek();
  ASSERT_EQ(rows.state, SourceState::kRows);
  EXPECT_EQ(rows.first, 0U);
  EXPECT_EQ(rows.count, 3U);
  EXPECT_EQ(ring.backlog_rows(), 3U);
  ring.Release(2);
  rows = ring.Peek();
  EXPECT_EQ(rows.first, 2U);
  EXPECT_EQ(rows.count, 1U);
  EXPECT_EQ(ring.next_row(), 2U);
  EXPECT_EQ(ring.id().address, path_);
}

TEST_F(RingSourcesTest, LocalRingEndsClosedOnlyBehindItsLastRow) {
  LocalRing ring = Local();
  worker_->Write(1);
  worker_->producer().Close();
  EXPECT_EQ(ring.Peek().state, SourceState::kRows);
  ring.Release(1);
  EXPECT_TRUE(ring.HasNews());
  EXPECT_EQ(ring.Peek().state, SourceState::kClosed);
  EXPECT_TRUE(ring.TryRemove());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RingSourcesTest, DeadOwnerIsLookedForOnlyEachWhileAndBehindItsLastRow) {
  LocalRing ring = Local();
  EXPECT_EQ(ring.Peek().state, SourceState::kNone);  // looks, and finds it alive
  worker_->Write(1);
  Kill();
  EXPECT_EQ(ring.Peek().state, SourceState::kRows);
  ring.Release(1);
  EXPECT_EQ(ring.Peek().state, SourceState::kNone) << "the last look was just now";
  clock_.AdvanceNs(LocalRing::kDeadCheckNs);
  EXPECT_EQ(ring.Peek().state, SourceState::kOwnerDead);
}

TEST_F(RingSourcesTest, ImpossibleCursorMakesTheRingUnusableAndLosesNothingKnown) {
  LocalRing ring = Local();
  worker_->block().head.store(1000);
  EXPECT_TRUE(ring.HasNews());
  EXPECT_EQ(ring.Peek().state, SourceState::kUnusable);
  EXPECT_THAT(ring.problem(), HasSubstr("cursor is impossible"));
  EXPECT_EQ(ring.backlog_rows(), 0U);
}

TEST_F(RingSourcesTest, InferredRingShowsAnsweredRowsOnly) {
  const auto share = Share(0, 0);
  InferredRing ring = Inferred(share);
  worker_->Write(3);
  EXPECT_EQ(ring.Peek().state, SourceState::kNone);
  EXPECT_FALSE(ring.HasNews());
  share->answered = 2;
  EXPECT_TRUE(ring.HasNews());
  EXPECT_EQ(ring.Peek().count, 2U);
  ring.Release(2);
  EXPECT_EQ(ring.Peek().state, SourceState::kNone);
  EXPECT_FALSE(ring.HasNews());
}

TEST_F(RingSourcesTest, RowsForAnEarlierLearnerAreVoidAlsoWhereTheRingWraps) {
  {
    LocalRing before = Local();
    worker_->Write(5);
    EXPECT_EQ(before.Peek().count, 5U);
    before.Release(5);
  }
  worker_->Write(6);  // 5 to 10; the memory ends behind 7
  InferredRing ring = Inferred(Share(9, 11));
  const SourceRows rows = ring.Peek();
  ASSERT_EQ(rows.state, SourceState::kRows);
  EXPECT_EQ(rows.void_rows, 4U);
  EXPECT_EQ(rows.first, 9U);
  EXPECT_EQ(rows.count, 2U);
  EXPECT_EQ(ring.Peek().void_rows, 0U);
}

TEST_F(RingSourcesTest, DeadWorkersRowsWaitForTheirAnswersThenAreVoidAndTheRingEnds) {
  const auto share = Share(0, 0);
  InferredRing ring = Inferred(share);
  worker_->Write(4);
  Kill();
  EXPECT_EQ(ring.Peek().void_rows, 0U);  // found dead
  share->answered = 1;
  EXPECT_EQ(ring.Peek().count, 1U);  // one was under way: the others have their full time again
  ring.Release(1);
  clock_.AdvanceNs(LocalRing::kDeadCheckNs);
  EXPECT_EQ(ring.Peek().void_rows, 0U);
  clock_.AdvanceNs(InferredRing::kLastAnswersNs - 1);
  EXPECT_EQ(ring.Peek().void_rows, 0U);
  clock_.AdvanceNs(LocalRing::kDeadCheckNs);
  EXPECT_EQ(ring.Peek().void_rows, 3U);
  clock_.AdvanceNs(LocalRing::kDeadCheckNs);
  EXPECT_EQ(ring.Peek().state, SourceState::kOwnerDead);
}

TEST_F(RingSourcesTest, BrokenStreamIsUnusableBeforeAnythingElseAndTellsWhatIsLost) {
  const auto share = Share(0, 2);
  InferredRing ring = Inferred(share);
  worker_->Write(3);
  share->problem = "no policy";
  share->broken = true;
  EXPECT_TRUE(ring.HasNews());
  EXPECT_EQ(ring.Peek().state, SourceState::kUnusable);
  EXPECT_EQ(ring.problem(), "no policy");
  EXPECT_EQ(ring.backlog_rows(), 3U);
}

TEST_F(RingSourcesTest, VoidRowsAndTheEndBehindThemAreOnePeek) {
  InferredRing ring = Inferred(Share(9, 9));
  worker_->Write(4);
  worker_->producer().Close();
  SourceRows rows = ring.Peek();
  EXPECT_EQ(rows.state, SourceState::kClosed);
  EXPECT_EQ(rows.void_rows, 4U);
  EXPECT_EQ(rows.count, 0U);
  EXPECT_EQ(ring.backlog_rows(), 0U);
  rows = ring.Peek();
  EXPECT_EQ(rows.state, SourceState::kClosed);
  EXPECT_EQ(rows.void_rows, 0U) << "they are told once";
}

TEST_F(RingSourcesTest, VoidRowsOfADeadWorkerAndItsEndAreOnePeek) {
  InferredRing ring = Inferred(Share(9, 9));
  worker_->Write(4);
  Kill();
  const SourceRows rows = ring.Peek();
  EXPECT_EQ(rows.state, SourceState::kOwnerDead);
  EXPECT_EQ(rows.void_rows, 4U);
}

TEST_F(RingSourcesTest, InferredRingTellsWhoseItIs) {
  const InferredRing ring = Inferred(Share(0, 0));
  EXPECT_EQ(ring.id().session, 9U);
  EXPECT_EQ(ring.id().worker, 1U);
  EXPECT_EQ(ring.id().shard, 2);
  EXPECT_EQ(ring.id().address, path_);
}

// Inference lets go of the region at the first try, whether or not the file goes then.
TEST_F(RingSourcesTest, InferenceIsToldBeforeALockedFolderLetsTheFileGo) {
  const auto share = Share(0, 0);
  InferredRing ring = Inferred(share);
  EXPECT_FALSE(share->ended);
  {
    const ShmDirLock lock(dir_.path());
    EXPECT_FALSE(ring.TryRemove());
    EXPECT_TRUE(share->ended);
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(ring.TryRemove());
  EXPECT_TRUE(share->ended);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(RingSourcesTest, BlockingRemovalTellsInferenceToo) {
  const auto share = Share(0, 0);
  InferredRing ring = Inferred(share);
  ring.Remove();
  EXPECT_TRUE(share->ended);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace tetrion::learner
