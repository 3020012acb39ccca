#include "services/coordinator/store_agent.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>

#include "lib/core/philox.h"
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
  agent_.Push(Report(0, StoreAgent::kEnoughReports - 1), Durability::kReport);
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

TEST_F(StoreAgentTest, WhatIsNotWrittenAtTheEndIsTold) {
  EXPECT_EQ(agent_.Unwritten(), "");
  files_.FailWrites(SQLITE_FULL);
  agent_.Push(Change(0), Durability::kReport);
  agent_.OnClose();
  EXPECT_NE(agent_.Unwritten(), "");
  files_.FailWrites(SQLITE_OK);
  agent_.OnClose();
  EXPECT_EQ(agent_.Unwritten(), "");
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

// The store's write-ahead log under many commits, beside a process that reads the file.
class StoreLogTest : public ::testing::Test {
 protected:
  static constexpr int kLogPages = 64;
  static constexpr std::uint64_t kPageBytes = 8192;

  StoreLogTest() {
    static_cast<void>(store_.Load(4));
    EXPECT_EQ(Database(folder_ / "t.db").Setting("page_size"), kPageBytes);
  }
  void Commit() {
    StoreChange change;
    change.ranges = {{.first_id = number_ * wire::kRangeTokens, .attempt = 1}};
    const std::uint64_t tokens = ++number_ * wire::kRangeTokens;
    change.counts = {.tokens = {.issued = tokens, .free_again = tokens}, .next_token = tokens};
    change.report = ReportRow{.session = 1, .run_id = 2, .batch = number_, .episodes = {}};
    change.report->episodes.resize(64);
    agent_.Push(change, Durability::kReport);
    clock_.AdvanceNs(StoreAgent::kGroupWaitNs);
    ASSERT_EQ(agent_.DoWork(), 1);
  }
  std::uint64_t Pages() const {
    return std::filesystem::file_size(folder_ / "t.db-wal") / kPageBytes;
  }

  TestFolder folder_;
  Store store_{folder_ / "t.db", {.log_bytes = kLogPages * kPageBytes}};
  FakeClock clock_;
  StoreAgent agent_{store_, clock_};
  std::uint64_t number_ = 0;
};

// The reader's states span some commits and come as the seed says: some tries meet one.
TEST_F(StoreLogTest, LogOfManyCommitsIsBoundedThoughReadersComeAndGo) {
  Database reader(folder_ / "t.db");
  constexpr std::uint32_t kSeed = 11, kCommits = 1500, kPagesOfACommit = 3;  // a leaf of each table
  static_assert(kCommits * kPagesOfACommit > 4 * 16 * kLogPages, "unbounded, it would be seen");
  std::uint64_t most = 0;
  bool reads = false;
  for (std::uint32_t i = 0; i < kCommits; ++i) {
    if (Philox4x32({{i, 0, 0, 0}}, kSeed, 0).word[0] % 8 < (reads ? 4U : 1U)) {
      reader.Execute(reads ? "COMMIT" : "BEGIN; SELECT COUNT(*) FROM ranges;");
      reads = !reads;
    }
    Commit();
    most = std::max(most, Pages());
  }
  EXPECT_LE(most, 16U * kLogPages);
  if (reads) reader.Execute("COMMIT");
  clock_.AdvanceNs(StoreAgent::kMaxLogRetryNs);
  for (int i = 0; i < 20; ++i) Commit();
  EXPECT_LE(agent_.log_bytes(), 2U * kLogPages * kPageBytes);
}

TEST_F(StoreLogTest, LogThatALongReaderHeldIsEmptiedOnceItEnds) {
  Database reader(folder_ / "t.db");
  reader.Execute("BEGIN; SELECT COUNT(*) FROM ranges;");
  for (int i = 0; i < 200; ++i) Commit();
  EXPECT_GT(Pages(), 4U * kLogPages) << "what the reader sees may not be overwritten";
  EXPECT_GT(agent_.log_bytes(), 4U * kLogPages * kPageBytes);
  reader.Execute("COMMIT");
  clock_.AdvanceNs(StoreAgent::kMaxLogRetryNs);
  EXPECT_EQ(agent_.DoWork(), 0) << "without a commit";
  EXPECT_EQ(Pages(), 0U);
  EXPECT_EQ(agent_.log_bytes(), 0U);
  Statement count(reader, "SELECT COUNT(*) FROM ranges");
  ASSERT_TRUE(count.Next());
  EXPECT_EQ(count.Integer(0), 200U);
}

TEST_F(StoreLogTest, LogIsCopiedWithoutReadersAsSoonAsItIsFull) {
  for (int i = 0; i < 300; ++i) Commit();
  EXPECT_LE(Pages(), 2U * kLogPages);
  Database reader(folder_ / "t.db");
  Statement count(reader, "SELECT COUNT(*) FROM ranges");
  ASSERT_TRUE(count.Next());
  EXPECT_EQ(count.Integer(0), 300U);
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
