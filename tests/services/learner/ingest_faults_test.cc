#include <gmock/gmock.h>

#include <limits>

#include "tests/services/learner/ingest_fixture.h"

// What the ingest agent does about rings whose other end is dead, damaged or hostile.
namespace tetrion::learner {
namespace {

class IngestFaultsTest : public IngestFixture {};

TEST_F(IngestFaultsTest, RingOfADeadProcessIsDrainedThenReportedDead) {
  const std::string path = TestWorker::PathOf(dir_.path(), 1);
  const pid_t child = fork();
  if (child == 0) {
    TestWorker worker(dir_.path(), layout_, 1);
    worker.Write(7);
    (void)worker.producer().Claim();  // the row it was busy with
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  List({{path, 1}});
  Cycle();
  EXPECT_EQ(replay_->Stats(1).committed_rows, 7U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kOwnerDead);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(agent_->counters().quarantined.load(), 0U);
}

TEST_F(IngestFaultsTest, KilledOwnerOfAnAttachedRingIsNoticed) {
  const std::string path = TestWorker::PathOf(dir_.path(), 1);
  PausedChild child([&] {
    static TestWorker worker(dir_.path(), layout_, 1);
    worker.Write(3);
  });
  List({{path, 0}});
  Cycle();
  EXPECT_EQ(RowsIn(0), 3U);
  EXPECT_TRUE(board_.Ended().empty());  // stopped is not dead
  child.Kill();
  Cycle();
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kOwnerDead);
}

struct Spoiling {
  const char* name;
  void (*spoil)(RowView&);
};

class IngestSpoiltRowTest : public IngestFixture, public ::testing::WithParamInterface<Spoiling> {};

TEST_P(IngestSpoiltRowTest, QuarantinesTheRingAndServesTheOthers) {
  auto bad = MakeWorker(1), good = MakeWorker(2);
  List({{bad->path(), 0}, {good->path(), 1}});
  bad->Write(5);
  good->Write(5);
  Cycle();
  bad->Write(4, GetParam().spoil);
  bad->Write(2);
  good->Write(6);
  Cycle();
  EXPECT_EQ(RowsIn(0), 5U);  // nothing of the bad batch
  EXPECT_EQ(RowsIn(1), 11U);
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 6U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].path, bad->path());
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kQuarantined);
  EXPECT_THAT(board_.Ended()[0].reason, ::testing::StartsWith("row 8: "));
  EXPECT_FALSE(std::filesystem::exists(bad->path()));
  EXPECT_EQ(agent_->counters().rings.load(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Columns, IngestSpoiltRowTest,
    ::testing::Values(Spoiling{"Record", [](RowView& row) { row.record[15] = std::byte{0xFF}; }},
                      Spoiling{"ActionTooLarge", [](RowView& row) { row.action[1] = kActions; }},
                      Spoiling{"ActionNegative", [](RowView& row) { row.action[0] = -1; }},
                      Spoiling{"RowNumber", [](RowView& row) { ++row.header->row; }},
                      Spoiling{"RewardNan",
                               [](RowView& row) {
                                 row.reward[0] = std::numeric_limits<float>::quiet_NaN();
                               }},
                      Spoiling{"FlagsUnknown", [](RowView& row) { row.flags[1] = 0x80; }},
                      Spoiling{"ContWithoutEnd", [](RowView& row) { row.cont[0] = 0.0F; }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(IngestFaultsTest, RowsPublishedSinceTheLastLookAreLostWithTheRingToo) {
  auto bad = MakeWorker(1);
  List({{bad->path(), 0}});
  bad->Write(64);
  bad->Write(6, [](RowView& row) { row.action[0] = -1; });
  while (RowsIn(0) < 64) Cycle(1);
  bad->Write(10);
  Cycle();
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 16U);
}

TEST_F(IngestFaultsTest, ImpossibleCursorQuarantinesTheRingAndServesTheOthers) {
  auto bad = MakeWorker(1), good = MakeWorker(2);
  List({{bad->path(), 0}, {good->path(), 1}});
  bad->Write(4);
  good->Write(4);
  Cycle();
  bad->block().head.store(std::uint64_t{1} << 40);
  good->Write(4);
  Cycle();
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(RowsIn(0), 4U);
  EXPECT_EQ(RowsIn(1), 8U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].path, bad->path());
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kQuarantined);
  EXPECT_NE(board_.Ended()[0].reason, "");
}

TEST_F(IngestFaultsTest, FirstListRemovesTheRunsOrphansAndNothingElse) {
  auto locked = MakeWorker(1), listed = MakeWorker(2), orphan = MakeWorker(3);
  TestWorker other_run(dir_.path(), layout_, 4, 256, kRun + 1);
  const std::string orphan_path = orphan->path();
  orphan.reset();  // its file stays, nobody holds it
  List({{listed->path(), 0}});
  Cycle();
  EXPECT_FALSE(std::filesystem::exists(orphan_path));
  EXPECT_TRUE(std::filesystem::exists(locked->path()));
  EXPECT_TRUE(std::filesystem::exists(listed->path()));
  EXPECT_TRUE(std::filesystem::exists(other_run.path()));
}

// Its actor died before it had announced the ring; one that was announced in time is drained.
TEST_F(IngestFaultsTest, OrphanOfALaterActorIsRemovedOnceTwoLooksHaveFoundIt) {
  constexpr int kCyclesBetweenLooks = 170;
  List({});
  Cycle();
  auto orphan = MakeWorker(1), announced = MakeWorker(2);
  const std::string orphan_path = orphan->path(), announced_path = announced->path();
  announced->Write(4);
  orphan.reset();
  announced.reset();
  Cycle(kCyclesBetweenLooks);
  EXPECT_TRUE(std::filesystem::exists(orphan_path));
  List({{announced_path, 0}});
  Cycle(kCyclesBetweenLooks);
  EXPECT_FALSE(std::filesystem::exists(orphan_path));
  EXPECT_EQ(RowsIn(0), 4U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kOwnerDead);
}

// A process that makes a region holds the folder for as long as that takes; rows must not wait.
TEST_F(IngestFaultsTest, LockedFolderKeepsNoRowsWaitingAndIsClearedLater) {
  auto closing = MakeWorker(1), playing = MakeWorker(2), orphan = MakeWorker(3);
  const std::string orphan_path = orphan->path();
  orphan.reset();
  closing->Write(3);
  closing->producer().Close();
  List({{closing->path(), 0}, {playing->path(), 1}});
  {
    const ShmDirLock lock(dir_.path());
    playing->Write(5);
    Cycle();
    EXPECT_EQ(RowsIn(0), 3U);
    EXPECT_EQ(RowsIn(1), 5U);
    ASSERT_EQ(board_.Ended().size(), 1U);
    EXPECT_EQ(agent_->counters().leaving.load(), 1U);
    EXPECT_TRUE(std::filesystem::exists(closing->path()));
    EXPECT_TRUE(std::filesystem::exists(orphan_path));
  }
  Cycle();
  EXPECT_FALSE(std::filesystem::exists(closing->path()));
  EXPECT_FALSE(std::filesystem::exists(orphan_path));
  EXPECT_EQ(agent_->counters().leaving.load(), 0U);
  EXPECT_EQ(board_.Ended().size(), 1U);
}

TEST_F(IngestFaultsTest, FilesThatWaitForTheFolderAreRemovedAtTheLatestWhenIngestEnds) {
  auto worker = MakeWorker(1);
  worker->producer().Close();
  List({{worker->path(), 0}});
  {
    const ShmDirLock lock(dir_.path());
    Cycle(2);
  }
  EXPECT_TRUE(std::filesystem::exists(worker->path()));
  agent_->OnClose();
  EXPECT_FALSE(std::filesystem::exists(worker->path()));
}

TEST_F(IngestFaultsTest, ListedRingOfADeadOwnerIsDrainedNotRemovedAsAnOrphan) {
  auto worker = MakeWorker(1);
  worker->Write(6);
  const std::string path = worker->path();
  worker.reset();
  List({{path, 0}});
  Cycle();
  EXPECT_EQ(RowsIn(0), 6U);
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kOwnerDead);
}

TEST_F(IngestFaultsTest, LaterListsRemoveNothing) {
  List({});
  Cycle();
  auto worker = MakeWorker(1);
  const std::string path = worker->path();
  worker.reset();
  List({});
  Cycle();
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tetrion::learner
