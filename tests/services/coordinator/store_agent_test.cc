#include "services/coordinator/store_agent.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "tests/services/coordinator/durable_files.h"
#include "tests/services/coordinator/fixture.h"

namespace tetrion::coordinator {
namespace {

// The agent over a real store, stepped by the test under a clock that the test moves. DoWork is
// called only when something is due: otherwise it would wait, in real time.
class StoreAgentTest : public ::testing::Test {
 protected:
  StoreAgentTest() { static_cast<void>(store_.Load(4)); }

  // A change whose order can be read back: next_token counts the changes.
  static StoreChange Change(std::uint64_t number) {
    StoreChange change;
    change.ranges = {{.first_id = number * wire::kRangeTokens, .attempt = 1}};
    const std::uint64_t tokens = (number + 1) * wire::kRangeTokens;
    change.counts = {.tokens = {.issued = tokens, .free_again = tokens}, .next_token = tokens};
    return change;
  }
  static StoreChange Report(std::uint64_t number, std::size_t episodes) {
    StoreChange change = Change(number);
    change.report = ReportRow{.session = 1, .run_id = 2, .batch = number + 1, .episodes = {}};
    change.report->episodes.resize(episodes);
    return change;
  }
  bool EventIsSet() const {
    pollfd event = {agent_.event_fd(), POLLIN, 0};
    return poll(&event, 1, 0) == 1;
  }

  TestFolder folder_;
  DurableFiles files_{folder_.path()};
  Store store_{folder_ / "t.db"};
  FakeClock clock_;
  StoreAgent agent_{store_, clock_};
};

TEST_F(StoreAgentTest, PromiseIsWrittenAtOnceWithWhateverWaitedBeforeIt) {
  EXPECT_EQ(agent_.Push(Change(0), Durability::kReport), 1U);
  EXPECT_EQ(agent_.Push(Change(1), Durability::kPromise), 2U);
  EXPECT_EQ(agent_.committed(), 0U);
  EXPECT_FALSE(EventIsSet());
  EXPECT_EQ(agent_.DoWork(), 2);
  EXPECT_EQ(agent_.committed(), 2U);
  EXPECT_EQ(agent_.commits(), 1U);
  EXPECT_EQ(agent_.Queued(), 0U);
  EXPECT_TRUE(EventIsSet());
  agent_.DrainEvent();
  EXPECT_FALSE(EventIsSet());
}

TEST_F(StoreAgentTest, ReportsAloneWaitForCompany) {
  agent_.Push(Report(0, 10), Durability::kReport);
  clock_.AdvanceNs(StoreAgent::kGroupWaitNs - 1);
  EXPECT_EQ(agent_.DoWork(), 0);
  agent_.Push(Report(1, 10), Durability::kReport);
  clock_.AdvanceNs(1);
  EXPECT_EQ(agent_.DoWork(), 2);
}

TEST_F(StoreAgentTest, EnoughReportsAreCompany) {
  agent_.Push(Report(0, StoreAgent::kGroupReports - 1), Durability::kReport);
  agent_.Push(Report(1, 1), Durability::kReport);
  EXPECT_EQ(agent_.DoWork(), 2);
}

TEST_F(StoreAgentTest, GroupIsBoundedByItsEpisodes) {
  constexpr std::size_t kEpisodes = StoreAgent::kGroupReports / 4;
  for (std::uint64_t i = 0; i < 10; ++i) {
    agent_.Push(Report(i, kEpisodes), i == 9 ? Durability::kPromise : Durability::kReport);
  }
  EXPECT_EQ(agent_.DoWork(), 4);
  EXPECT_EQ(agent_.committed(), 4U);
  EXPECT_EQ(agent_.DoWork(), 4);
  EXPECT_EQ(agent_.DoWork(), 2);
  EXPECT_EQ(agent_.committed(), 10U);
}

TEST_F(StoreAgentTest, PromiseBehindReportsSurvivesALossOfPower) {
  agent_.Push(Change(0), Durability::kReport);
  clock_.AdvanceNs(StoreAgent::kGroupWaitNs);
  ASSERT_EQ(agent_.DoWork(), 1);
  agent_.Push(Change(1), Durability::kReport);
  agent_.Push(Change(2), Durability::kPromise);
  agent_.Push(Change(3), Durability::kReport);
  ASSERT_EQ(agent_.DoWork(), 3);
  EXPECT_EQ(Store(files_.LosePower("t.db")).Load(4).counts.next_token, 4 * wire::kRangeTokens);
}

TEST_F(StoreAgentTest, GroupThatCannotBeWrittenIsKeptAndWrittenOnceItCan) {
  files_.FailWrites(SQLITE_FULL);
  agent_.Push(Change(0), Durability::kPromise);
  EXPECT_EQ(agent_.DoWork(), 0);
  EXPECT_TRUE(agent_.Paused());
  EXPECT_NE(agent_.PauseReason(), "");
  EXPECT_EQ(agent_.committed(), 0U);
  EXPECT_EQ(agent_.Queued(), 1U);
  files_.FailWrites(SQLITE_OK);
  agent_.Push(Change(1), Durability::kPromise);
  EXPECT_EQ(agent_.DoWork(), 0);  // not before the next try
  clock_.AdvanceNs(StoreAgent::kRetryNs);
  EXPECT_EQ(agent_.DoWork(), 1);
  EXPECT_FALSE(agent_.Paused());
  EXPECT_EQ(agent_.PauseReason(), "");
  EXPECT_EQ(agent_.committed(), 1U);
  EXPECT_EQ(agent_.DoWork(), 1);
  EXPECT_EQ(agent_.committed(), 2U);
  const StoredRun run = Store(files_.LosePower("t.db")).Load(4);
  EXPECT_EQ(run.open_ranges.size(), 2U);
}

TEST_F(StoreAgentTest, ClosingWritesWhatIsLeft) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    agent_.Push(Report(i, StoreAgent::kGroupReports), Durability::kReport);
  }
  agent_.OnClose();
  EXPECT_EQ(agent_.committed(), 3U);
  EXPECT_EQ(agent_.commits(), 3U);
}

TEST_F(StoreAgentTest, FullQueueHasNoRoomLongBeforePushFails) {
  std::uint64_t pushed = 0;
  for (; agent_.HasRoom(); ++pushed) agent_.Push({}, Durability::kReport);
  EXPECT_LT(pushed + 512, StoreAgent::kMaxQueued);  // two changes for each message of a cycle
}

}  // namespace
}  // namespace tetrion::coordinator
