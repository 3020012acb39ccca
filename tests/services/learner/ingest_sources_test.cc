#include <gmock/gmock.h>

#include "tests/services/learner/ingest_fixture.h"
#include "tests/services/learner/scripted_source.h"

// What the ingest agent does with any source: here none is a ring.
namespace tetrion::learner {
namespace {

using Step = ScriptedSource::Step;
using Log = ScriptedSource::Log;
using ::testing::ElementsAre;

class IngestSourcesTest : public IngestFixture {
 protected:
  IngestSourcesTest() { Rebuild(100); }
  void Rebuild(int batch_windows) {
    Build(batch_windows);
    agent_ = std::make_unique<IngestAgent>(
        IngestAgent::Config{
            .action_count = kActions, .check_records = CheckTestRecords, .wait_ns = kNanosPerMilli},
        *replay_, *memory_, Bell(&bell_), finder_, clock_);
  }
  // A source of worker `worker` that feeds the shard of the same number.
  std::shared_ptr<Log> Add(std::uint32_t worker, std::deque<Step> script) {
    auto log = std::make_shared<Log>();
    finder_.Add(
        std::make_unique<ScriptedSource>(SourceId{.session = 40U + worker,
                                                  .worker = worker,
                                                  .shard = static_cast<int>(worker),
                                                  .address = "host:" + std::to_string(worker)},
                                         layout_, std::move(script), log));
    return log;
  }

  ScriptedFinder finder_;
};

TEST_F(IngestSourcesTest, RowsBeforeAndAfterAPauseArriveThenTheSourceIsRemovedAndReported) {
  const auto log = Add(1, {{SourceState::kRows, 3},
                           {SourceState::kNone},
                           {SourceState::kRows, 2},
                           {SourceState::kClosed}});
  EXPECT_EQ(agent_->DoWork(), 3);
  EXPECT_EQ(agent_->DoWork(), 0);
  EXPECT_EQ(agent_->DoWork(), 2);
  EXPECT_EQ(agent_->counters().rings.load(), 1U);
  EXPECT_TRUE(finder_.ended().empty());
  EXPECT_EQ(agent_->DoWork(), 0);
  EXPECT_EQ(replay_->Stats(1).committed_rows, 5U);  // the partial stride too
  EXPECT_THAT(log->released, ElementsAre(3U, 2U));
  EXPECT_EQ(log->removals, 1);
  ASSERT_EQ(finder_.ended().size(), 1U);
  EXPECT_EQ(finder_.ended()[0].state, SourceState::kClosed);
  EXPECT_EQ(finder_.ended()[0].id.address, "host:1");
  EXPECT_EQ(finder_.ended()[0].id.session, 41U);
  EXPECT_EQ(finder_.ended()[0].id.worker, 1U);
  EXPECT_EQ(agent_->counters().rings.load(), 0U);
}

TEST_F(IngestSourcesTest, DeadOwnerIsReportedAsSuch) {
  Add(0, {{SourceState::kRows, 1}, {SourceState::kOwnerDead}});
  Cycle(2);
  ASSERT_EQ(finder_.ended().size(), 1U);
  EXPECT_EQ(finder_.ended()[0].state, SourceState::kOwnerDead);
  EXPECT_EQ(finder_.ended()[0].reason, "");
  EXPECT_EQ(agent_->counters().quarantined.load(), 0U);
}

TEST_F(IngestSourcesTest, UnusableSourceIsQuarantinedWithItsReason) {
  Add(0, {{SourceState::kUnusable}});
  Cycle(1);
  ASSERT_EQ(finder_.ended().size(), 1U);
  EXPECT_EQ(finder_.ended()[0].state, SourceState::kUnusable);
  EXPECT_EQ(finder_.ended()[0].reason, "the script says so");
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 0U);
}

TEST_F(IngestSourcesTest, BadRowQuarantinesItsSourceBeforeAnyRowOfTheTurnAndNoOther) {
  const auto bad = Add(0, {{SourceState::kRows, 2},
                           {.state = SourceState::kRows, .count = 4, .bad_row = 3},
                           {SourceState::kRows, 5}});
  Add(1, {{SourceState::kRows, 2}, {SourceState::kNone}, {SourceState::kRows, 3}});
  Cycle(4);
  EXPECT_EQ(RowsIn(0), 2U);
  EXPECT_EQ(RowsIn(1), 5U);
  EXPECT_THAT(bad->released, ElementsAre(2U));
  EXPECT_EQ(agent_->counters().quarantined.load(), 1U);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 9U);
  ASSERT_EQ(finder_.ended().size(), 1U);
  EXPECT_EQ(finder_.ended()[0].state, SourceState::kUnusable);
  EXPECT_THAT(finder_.ended()[0].reason, ::testing::StartsWith("row 5: "));
}

TEST_F(IngestSourcesTest, VoidRowsAreCountedLostWithAndWithoutRowsBehindThem) {
  Add(0, {{.state = SourceState::kRows, .count = 2, .void_rows = 3},
          {.state = SourceState::kNone, .void_rows = 4}});
  Cycle(3);
  EXPECT_EQ(agent_->counters().rows_lost.load(), 7U);
  EXPECT_EQ(RowsIn(0), 2U);
}

TEST_F(IngestSourcesTest, OneTurnTakesNoMoreThanItsShareOfAFullSource) {
  const auto log = Add(0, {{SourceState::kRows, 200}});
  Cycle(4);
  EXPECT_THAT(log->released, ElementsAre(64U, 64U, 64U, 8U));
}

TEST_F(IngestSourcesTest, OnlyWhatTheLimiterLetInIsReleased) {
  Rebuild(/*batch_windows=*/1);
  const auto log = Add(0, {{SourceState::kRows, 20}});
  EXPECT_GT(agent_->DoWork(), 0);
  EXPECT_THAT(log->released, ElementsAre(12U));  // two windows of 4 steps, committed in fours
  EXPECT_EQ(agent_->BacklogRows(0), 8U);
  EXPECT_GT(agent_->DoWork(), 0) << "it has waited for the limiter and sleeps no more";
  EXPECT_EQ(RowsIn(0), 12U);
}

TEST_F(IngestSourcesTest, SourceThatCannotBeRemovedYetIsRemovedLaterAndReportedOnce) {
  const auto log = Add(0, {{SourceState::kClosed}});
  log->locked = true;
  Cycle(3);
  EXPECT_EQ(agent_->counters().leaving.load(), 1U);
  log->locked = false;
  Cycle(2);
  EXPECT_EQ(agent_->counters().leaving.load(), 0U);
  EXPECT_EQ(log->removals, 1);
  EXPECT_EQ(finder_.ended().size(), 1U);
}

TEST_F(IngestSourcesTest, SourceWithNewsKeepsIngestAwake) {
  Add(0, {{SourceState::kNone}, {SourceState::kNone}, {SourceState::kRows, 1}});
  const std::uint64_t sleeps = Bell(&bell_).SleepsApprox();
  Cycle(2);
  EXPECT_EQ(Bell(&bell_).SleepsApprox(), sleeps);
  Cycle(3);
  EXPECT_EQ(RowsIn(0), 1U);
  EXPECT_GT(Bell(&bell_).SleepsApprox(), sleeps);
}

}  // namespace
}  // namespace tetrion::learner
