#include "services/learner/ingest_agent.h"

#include <atomic>
#include <thread>

#include "tests/services/learner/ingest_fixture.h"

namespace tetrion::learner {
namespace {

using Rows = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

class IngestAgentTest : public IngestFixture {};

TEST_F(IngestAgentTest, RowsOfEachRingArriveInOrderInItsShard) {
  auto a = MakeWorker(5), b = MakeWorker(6);
  List({{a->path(), 2}, {b->path(), 0}});
  a->Write(3);
  Cycle(2);
  a->Write(9);
  b->Write(6);
  Cycle();
  EXPECT_EQ(RowsIn(2), 12U);
  EXPECT_EQ(RowsIn(0), 6U);
  EXPECT_EQ(RowsIn(1), 0U);
  EXPECT_EQ(agent_->counters().rows.load(), 18U);
  EXPECT_EQ(agent_->counters().rings.load(), 2U);
  EXPECT_EQ(Deliver(2), (Rows{{5, 0},
                              {5, 1},
                              {5, 2},
                              {5, 3},
                              {5, 4},  //
                              {5, 4},
                              {5, 5},
                              {5, 6},
                              {5, 7},
                              {5, 8}}));
}

TEST_F(IngestAgentTest, RowsCrossTheEndOfTheRingsMemoryUnchanged) {
  auto worker = MakeWorker(1, 8);
  List({{worker->path(), 1}});
  for (int i = 0; i < 9; ++i) {  // 45 rows through a ring of 8
    worker->Write(5);
    Cycle(2);
  }
  ASSERT_EQ(RowsIn(1), 45U);
  for (std::uint32_t start = 0; start < 40; start += kSteps) {
    const Rows rows = Deliver(1);
    ASSERT_EQ(rows.size(), 5U);
    for (std::uint32_t t = 0; t <= kSteps; ++t) EXPECT_EQ(rows[t].second, start + t);
  }
}

// While the trainer is the slower side there is room for a few rows at a time.
TEST_F(IngestAgentTest, RingsHaveTheRoomThatComesInTurn) {
  Build(/*batch_windows=*/1);
  auto a = MakeWorker(1, 1024), b = MakeWorker(2, 1024);
  for (TestWorker* worker : {a.get(), b.get()}) worker->Write(1000);
  List({{a->path(), 0}, {b->path(), 1}});
  Cycle();
  std::uint64_t rows[2] = {RowsIn(0), RowsIn(1)};
  for (int i = 0; i < 40; ++i) {
    ASSERT_FALSE(Deliver(1).empty());
    Cycle(1);
  }
  for (int slot = 0; slot < 2; ++slot) {
    EXPECT_GT(RowsIn(slot), rows[slot] + 40U) << "of 160 that found room";
  }
}

TEST_F(IngestAgentTest, AFullRingDoesNotKeepAnotherWaiting) {
  Build(/*batch_windows=*/1000);
  auto flood = MakeWorker(1, 1024), trickle = MakeWorker(2);
  flood->Write(1000);
  trickle->Write(1);
  List({{flood->path(), 0}, {trickle->path(), 1}});
  Cycle(1);
  EXPECT_EQ(RowsIn(1), 1U);
  EXPECT_GT(RowsIn(0), 0U);
  EXPECT_LT(RowsIn(0), 100U);
  Cycle(40);
  EXPECT_EQ(RowsIn(0) + RowsIn(1), 1001U);
}

TEST_F(IngestAgentTest, ClosedRingIsDrainedUnlinkedAndReported) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(6);
  worker->producer().Close();
  Cycle();
  EXPECT_EQ(replay_->Stats(0).committed_rows, 6U);  // the partial chunk too
  EXPECT_FALSE(std::filesystem::exists(worker->path()));
  ASSERT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(board_.Ended()[0].path, worker->path());
  EXPECT_EQ(board_.Ended()[0].end, wire::RingEnd::kClosed);
  EXPECT_EQ(agent_->counters().rings.load(), 0U);
}

TEST_F(IngestAgentTest, IdleRingOfALivingOwnerStays) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  Cycle(100);
  EXPECT_TRUE(board_.Ended().empty());
  worker->Write(2);
  Cycle();
  EXPECT_EQ(RowsIn(0), 2U);
}

TEST_F(IngestAgentTest, EndedRingThatIsListedAgainIsNotAttachedAgain) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->producer().Close();
  Cycle();
  ASSERT_EQ(board_.Ended().size(), 1U);
  List({{worker->path(), 0}});  // the coordinator has not heard yet
  Cycle();
  EXPECT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(agent_->counters().rings.load(), 0U);
}

TEST_F(IngestAgentTest, NewRingInAUsedSlotBeginsWindowsOfItsOwn) {
  auto old = MakeWorker(1);
  List({{old->path(), 0}});
  old->Write(3);
  old->producer().Close();
  Cycle();
  auto young = MakeWorker(2);
  board_.ForgetEndedExcept({});
  List({{young->path(), 0}});
  young->Write(8);
  Cycle();
  const Rows rows = Deliver(1);
  ASSERT_EQ(rows.size(), 5U);
  for (std::uint32_t t = 0; t <= kSteps; ++t) EXPECT_EQ(rows[t], (Rows::value_type{2, t}));
}

TEST_F(IngestAgentTest, RowsThatAReaderHoldsKeepIngestBackAndTheWaitIsCounted) {
  Build(/*batch_windows=*/300, &MonotonicClock::Get());  // the limiter alone would let 2400 in
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(8);
  Cycle();
  {
    const ReadLease lease = replay_->OpenLease(1, kSteps + 1, 0);
    ASSERT_TRUE(static_cast<bool>(lease));
    for (int i = 0; i < 6; ++i) {
      worker->Write(200);
      Cycle();
    }
    EXPECT_LE(RowsIn(0), 1024U);
    EXPECT_GT(agent_->counters().leased_ns.load(), 0);
  }
  Cycle();
  EXPECT_EQ(RowsIn(0), 1208U);
}

TEST_F(IngestAgentTest, LimiterHoldsIngestUntilTheTrainerTakesAWindow) {
  Build(/*batch_windows=*/1, &MonotonicClock::Get());
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(100);
  Cycle();
  const std::uint64_t held = RowsIn(0);
  EXPECT_EQ(held, 12U);  // two whole windows, committed in fours
  EXPECT_GT(agent_->counters().limited_ns.load(), 0);
  EXPECT_EQ(agent_->counters().leased_ns.load(), 0);
  worker->Write(10);
  Cycle();
  EXPECT_EQ(RowsIn(0), held);
  EXPECT_EQ(agent_->BacklogRows(0), 110 - held) << "rows that came while nothing was taken, too";
  EXPECT_EQ(Deliver(1).size(), 5U);
  Cycle();
  EXPECT_EQ(RowsIn(0), held + kSteps);
}

TEST_F(IngestAgentTest, WaitThatEndsWithRoomIsCountedToo) {
  const std::int64_t patience_ns = 20 * kNanosPerSecond;
  Build(/*batch_windows=*/1, &MonotonicClock::Get(), patience_ns);
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(12);  // two whole windows: as much as the limiter lets in
  (void)agent_->DoWork();
  ASSERT_EQ(agent_->counters().limited_ns.load(), 0);
  const Deadline deadline(MonotonicClock::Get(), patience_ns);
  // On a busy machine the trainer may be there before ingest is held back.
  while (agent_->counters().limited_ns.load() == 0 && !deadline.Passed()) {
    worker->Write(kSteps);
    std::thread trainer([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      (void)Deliver(1);
    });
    while (agent_->counters().rows.load() < worker->producer().published()) (void)agent_->DoWork();
    trainer.join();
  }
  EXPECT_GT(agent_->counters().limited_ns.load(), 0);
  EXPECT_LT(agent_->counters().limited_ns.load(), patience_ns) << "it ended with the room";
}

TEST_F(IngestAgentTest, LimitedRingClosesOnlyAfterItsRowsWereTaken) {
  Build(/*batch_windows=*/1);
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(20);
  worker->producer().Close();
  Cycle();
  EXPECT_TRUE(board_.Ended().empty());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Deliver(1).size(), 5U);
    Cycle();
  }
  EXPECT_EQ(board_.Ended().size(), 1U);
  EXPECT_EQ(RowsIn(0), 20U);
}

TEST_F(IngestAgentTest, RestartedLearnerGoesOnAtTheRingsTail) {
  auto worker = MakeWorker(1);
  List({{worker->path(), 0}});
  worker->Write(8);
  Cycle();
  worker->Write(12);  // while no learner is there
  Build();
  Cycle();
  EXPECT_EQ(RowsIn(0), 12U);
  const Rows rows = Deliver(1);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.front().second, 8U);
  EXPECT_EQ(rows.back().second, 12U);
}

TEST_F(IngestAgentTest, WorkerThatComesInTheMiddleOfItsEpisodesBeginsThemInItsShard) {
  auto worker = MakeWorker(2);
  worker->Write(8);
  List({{worker->path(), 1}});
  Cycle();
  Build();  // whose shard 0 has another worker's rows when this one comes
  auto old = MakeWorker(1);
  old->Write(4);
  old->producer().Close();
  List({{old->path(), 0}});
  Cycle();
  worker->Write(1, [](RowView& row) { row.reward[0] = 2.0F; });
  worker->Write(1, [](RowView& row) { row.reward[1] = 3.0F; });
  List({{worker->path(), 0}});
  Cycle();
  ASSERT_EQ(RowsIn(0), 6U);
  const auto row = [&](std::uint64_t number) { return RowView(layout_, memory_->Row(0, number)); };
  for (std::size_t lane = 0; lane < layout_.spec.lanes; ++lane) {
    EXPECT_EQ(row(4).flags[lane], kIsFirst) << "its first row in the shard";
    EXPECT_EQ(row(4).reward[lane], 0.0F);
    EXPECT_EQ(row(5).flags[lane], 0);
  }
  EXPECT_EQ(row(5).reward[1], 3.0F);
  EXPECT_EQ(row(4).header->row, 8U);
}

// Fenced while it had tokens for some lanes alone: its first row has no game in the others.
TEST_F(IngestAgentTest, IdleLaneOfAFirstRowFollowsNoOtherWorkersGame) {
  auto old = MakeWorker(1);
  old->Write(4);
  old->producer().Close();
  List({{old->path(), 0}});
  Cycle();
  auto worker = MakeWorker(2);
  worker->Write(1, [](RowView& row) { row.flags[1] = kIsLast | kTruncated; });
  List({{worker->path(), 0}});
  Cycle();
  ASSERT_EQ(RowsIn(0), 5U);
  const RowView first(layout_, memory_->Row(0, 4));
  EXPECT_EQ(first.header->row, 0U);
  EXPECT_EQ(first.flags[1], kIsFirst | kIsLast | kTruncated);
}

TEST_F(IngestAgentTest, FirstRowThatHadToWaitForRoomBeginsItsEpisodesToo) {
  Build(/*batch_windows=*/1);
  auto first = MakeWorker(1), late = MakeWorker(2);
  first->Write(12);  // two whole windows: as much as the limiter lets in
  List({{first->path(), 0}});
  Cycle();
  late->Write(1, [](RowView& row) { row.flags[0] = row.flags[1] = 0; });
  List({{first->path(), 0}, {late->path(), 1}});
  Cycle();
  ASSERT_EQ(RowsIn(1), 0U);
  ASSERT_FALSE(Deliver(1).empty());
  Cycle();
  ASSERT_EQ(RowsIn(1), 1U);
  const RowView row(layout_, memory_->Row(1, 0));
  for (std::size_t lane = 0; lane < layout_.spec.lanes; ++lane)
    EXPECT_EQ(row.flags[lane], kIsFirst);
}

TEST_F(IngestAgentTest, SleepingAgentIsWokenByAProducersBell) {
  bell_.wakes = 5;  // of a learner before this one
  const std::unique_ptr<RingAttacher> attacher = MakeAttacher(MonotonicClock::Get());
  IngestAgent agent({.action_count = kActions, .wait_ns = 30 * kNanosPerSecond}, *replay_, *memory_,
                    Bell(&bell_), *attacher);
  auto worker = MakeWorker(1);
  worker->producer().SetBell(Bell(&bell_));
  List({{worker->path(), 0}});
  std::thread thread([&] {
    while (agent.counters().rows.load() == 0) (void)agent.DoWork();
  });
  const Deadline deadline = Deadline::AfterMs(20'000);
  while (Bell(&bell_).SleepsApprox() == 0 && !deadline.Passed()) std::this_thread::yield();
  worker->Write(1);
  thread.join();
  EXPECT_GE(Bell(&bell_).SleepsApprox(), 1U);
  EXPECT_GE(agent.doorbells(), 1U);
  EXPECT_EQ(agent.doorbells(), Bell(&bell_).WakesApprox() - 5);
}

}  // namespace
}  // namespace tetrion::learner
