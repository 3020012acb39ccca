#include "services/coordinator/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "lib/core/error.h"
#include "services/coordinator/store_schema.h"
#include "tests/services/coordinator/durable_files.h"
#include "tests/services/coordinator/fixture.h"
#include "tests/support/no_open_files.h"

namespace tetrion::coordinator {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "t.db"; }
  // The next range, all of it done, with its episodes in one report.
  static StoreChange FullRange(std::uint64_t number) {
    StoreChange change;
    LedgerRange range = {.first_id = number * wire::kRangeTokens, .attempt = 1};
    range.done = ~Bits256{};
    change.ranges = {range};
    ReportRow row = {.session = 1, .run_id = 2, .batch = number + 1, .episodes = {}};
    for (std::uint64_t i = 0; i < wire::kRangeTokens; ++i) {
      const auto wide = static_cast<std::uint32_t>(i * 2'654'435'761U);  // so that it needs room
      row.episodes.push_back({.token_id = range.first_id + i,
                              .attempt = 1,
                              .length_steps = wide,
                              .lines = wide,
                              .policy_version = wide,
                              .episode_return = static_cast<float>(wide)});
    }
    change.report = row;
    const std::uint64_t tokens = (number + 1) * wire::kRangeTokens;
    change.counts = {.tokens = {.issued = tokens, .done = tokens}, .next_token = tokens};
    return change;
  }
  void Execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::uint64_t Count(const std::string& table) {
    Database database(path());
    Statement count(database, ("SELECT COUNT(*) FROM " + table).c_str());
    return count.Next() ? count.Integer(0) : 0;
  }
  // The text of the error that a start meets, "" without one.
  std::string LoadError() {
    try {
      Store(path()).Load(4);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kConfig);
      return error.what();
    }
    return "";
  }

  TestFolder folder_;
};

TEST_F(StoreTest, OldEpisodesAreRemovedAndCountedAndRangesStayUntilTheyAreAllDone) {
  constexpr std::uint64_t kRanges = 40;
  {
    Store store(path(), {.keep_episodes = 1000});
    store.Load(4);
    for (std::uint64_t i = 0; i < kRanges; ++i) {
      ASSERT_EQ(store.Commit({{FullRange(i)}}), CommitResult::kOk);
    }
  }
  EXPECT_EQ(Count("reports"), 4U);  // the fewest rows that hold 1,000 episodes
  EXPECT_EQ(Count("ranges"), 0U);
  const StoredRun run = Store(path()).Load(4);  // the sums still agree
  EXPECT_EQ(run.counts.tokens.done, kRanges * wire::kRangeTokens);
  EXPECT_EQ(run.last_episodes.back().token_id, kRanges * wire::kRangeTokens - 1);
}

// As many actors with short episodes make between two commits.
TEST_F(StoreTest, NoLoadOutrunsWhatIsRemoved) {
  constexpr std::uint64_t kChanges = 512;
  Store store(path(), {.keep_episodes = 1000});
  store.Load(4);
  for (std::uint64_t group = 0; group < 8; ++group) {
    std::vector<StoreChange> changes;
    for (std::uint64_t i = 0; i < kChanges; ++i) changes.push_back(FullRange(group * kChanges + i));
    ASSERT_EQ(store.Commit(changes), CommitResult::kOk);
  }
  EXPECT_LE(Count("reports"), 4 + kChanges);
  EXPECT_EQ(Count("ranges"), 0U);
  EXPECT_EQ(LoadError(), "");
}

TEST_F(StoreTest, TimeThatARunWasServedIsKeptToASecond) {
  {
    Store store(path());
    EXPECT_EQ(store.Load(1).counts.served_s, 0);
    for (const double seconds : {0.5, 1.25, 1.5, 2.5}) {
      StoreChange change;
      change.counts.served_s = seconds;
      ASSERT_EQ(store.Commit(std::span(&change, 1)), CommitResult::kOk);
    }
  }
  EXPECT_EQ(Store(path()).Load(1).counts.served_s, 2.5);
  Execute("DROP TABLE served");  // a file of an earlier release
  EXPECT_EQ(Store(path()).Load(1).counts.served_s, 0);
}

TEST_F(StoreTest, BestReturnIsTheSameAfterARestart) {
  {
    Store store(path());
    store.Load(4);
    StoreChange change = FullRange(0);
    change.counts.return_best = -2.5;
    ASSERT_EQ(store.Commit({{change}}), CommitResult::kOk);
  }
  EXPECT_EQ(Store(path()).Load(4).counts.return_best, -2.5);
}

TEST_F(StoreTest, TimeOfAGroupThatFailedIsWrittenWithTheNextOne) {
  DurableFiles files(folder_.path());
  {
    Store store(path());
    store.Load(1);
    StoreChange change;
    change.counts.served_s = 5;
    files.FailWrites(SQLITE_FULL);
    ASSERT_EQ(store.Commit(std::span(&change, 1)), CommitResult::kPaused);
    files.FailWrites(SQLITE_OK);
    ASSERT_EQ(store.Commit(std::span(&change, 1)), CommitResult::kOk);
  }
  EXPECT_EQ(Store(path()).Load(1).counts.served_s, 5);
}

TEST_F(StoreTest, LockOfAnotherProcessIsAPauseNotAnEnd) {
  Store store(path());
  store.Load(4);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kPaused);
  EXPECT_NE(store.pause_reason().find("locked"), std::string::npos) << store.pause_reason();
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kOk);
  sqlite3_close(other);
  EXPECT_EQ(Count("reports"), 1U);
}

TEST_F(StoreTest, FailingDiskIsAPauseAndTheSameGroupIsWrittenOnceLater) {
  DurableFiles files(folder_.path());
  Store store(path());
  store.Load(4);
  for (const int error : {SQLITE_IOERR_WRITE, SQLITE_FULL, SQLITE_IOERR_FSYNC}) {
    files.FailWrites(error);
    EXPECT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kPaused) << error;
    EXPECT_NE(store.pause_reason(), "");
  }
  files.FailWrites(SQLITE_OK);
  ASSERT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kOk);
  EXPECT_EQ(Count("reports"), 1U);
}

// Pages were of 16 KiB in earlier releases.
TEST_F(StoreTest, LogIsMeasuredInThePagesThatItsFileHas) {
  constexpr std::uint64_t kLogHead = 32;
  for (const std::string size : {"", "PRAGMA page_size=16384; CREATE TABLE made_before(x);"}) {
    std::filesystem::remove(path());
    Execute(size);
    Store store(path());
    store.Load(4);
    ASSERT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kOk);
    EXPECT_EQ(store.LogBytes() + kLogHead, std::filesystem::file_size(path() + "-wal")) << size;
  }
}

TEST_F(StoreTest, GroupThatFailsHalfwayLeavesTheFileAsItWas) {
  Store store(path());
  store.Load(4);
  ASSERT_EQ(store.Commit({{FullRange(0)}}), CommitResult::kOk);
  store.LimitPages(store.Pages());
  std::vector<StoreChange> group(1);  // one that has room, and those that have none
  group[0].counts = FullRange(0).counts;
  group[0].slots = {{3, {.state = Slot::State::kAssigned, .process = 9}}};
  for (std::uint64_t i = 1; i < 9; ++i) group.push_back(FullRange(i));
  group.back().ranges.push_back({.first_id = 9 * wire::kRangeTokens, .attempt = 2});
  group.back().counts.next_token = group.back().counts.tokens.issued = 10 * wire::kRangeTokens;
  group.back().counts.tokens.free_again = wire::kRangeTokens;
  EXPECT_EQ(store.Commit(group), CommitResult::kPaused);
  EXPECT_EQ(Count("slots"), 0U);
  EXPECT_EQ(Count("ranges"), 0U);
  EXPECT_EQ(Count("reports"), 1U);
  EXPECT_EQ(LoadError(), "");
  store.LimitPages(0);
  ASSERT_EQ(store.Commit(group), CommitResult::kOk);
  EXPECT_EQ(Count("reports"), 9U);
  EXPECT_EQ(LoadError(), "");
}

TEST_F(StoreTest, RowsOfAGroupThatFailedAreNotCounted) {
  DurableFiles files(folder_.path());
  {
    Store store(path(), {.keep_episodes = 1000});
    store.Load(4);
    for (std::uint64_t i = 0; i < 20; ++i) {
      files.FailWrites(SQLITE_FULL);
      ASSERT_EQ(store.Commit({{FullRange(i)}}), CommitResult::kPaused);
      files.FailWrites(SQLITE_OK);
      ASSERT_EQ(store.Commit({{FullRange(i)}}), CommitResult::kOk);
    }
  }
  EXPECT_EQ(Count("reports"), 4U);
  EXPECT_EQ(LoadError(), "");
}

TEST_F(StoreTest, PromisesSurviveALossOfPowerAndReportsTillThenToo) {
  DurableFiles files(folder_.path());
  Store store(path());
  store.Load(4);
  ASSERT_EQ(store.Commit({{FullRange(0)}}, Durability::kReport), CommitResult::kOk);
  ASSERT_EQ(store.Commit({{FullRange(1)}}, Durability::kPromise), CommitResult::kOk);
  ASSERT_EQ(store.Commit({{FullRange(2)}}, Durability::kReport), CommitResult::kOk);
  const std::string after = files.LosePower("t.db");
  const StoredRun run = Store(after).Load(4);
  EXPECT_GE(run.counts.next_token, 2 * wire::kRangeTokens);
  EXPECT_EQ(run.epoch, 2U);
  EXPECT_EQ(run.counts.tokens.done, run.counts.next_token);
}

TEST_F(StoreTest, EpochSurvivesALossOfPower) {
  DurableFiles files(folder_.path());
  EXPECT_EQ(Store(path()).Load(4).epoch, 1U);
  Store store(path());
  EXPECT_EQ(store.Load(4).epoch, 2U);
  EXPECT_EQ(Store(files.LosePower("t.db")).Load(4).epoch, 3U);
}

TEST_F(StoreTest, StoreThatContradictsItselfIsRefusedWithOneSentence) {
  {
    Store store(path());
    store.Load(4);
    StoreChange change = FullRange(0);
    change.ranges.push_back({.first_id = wire::kRangeTokens, .attempt = 2});
    change.counts.next_token = change.counts.tokens.issued = 2 * wire::kRangeTokens;
    change.counts.tokens.free_again = wire::kRangeTokens;
    change.sessions = {{.number = (3ULL << 32) + 5, .name = "a", .process = 9}};
    change.processes = {{.number = 9, .env_steps = 70}};
    change.counts.next_session = 4;
    change.counts.env_steps = 70;
    ASSERT_EQ(store.Commit({{change}}), CommitResult::kOk);
  }
  EXPECT_EQ(LoadError(), "");
  const struct {
    std::string damage, mend, part;
  } cases[] = {
      {"UPDATE counts SET next_session = 3", "UPDATE counts SET next_session = 4", "session 3"},
      {"UPDATE counts SET done = 255", "UPDATE counts SET done = 256", "256"},
      {"UPDATE counts SET next_token = 768", "UPDATE counts SET next_token = 512", "counters"},
      {"UPDATE counts SET env_steps = 71", "UPDATE counts SET env_steps = 70", "steps"},
      {"UPDATE counts SET free_again = 1", "UPDATE counts SET free_again = 256", "counters"},
      {"UPDATE reports SET count = 255", "UPDATE reports SET count = 256", "episodes"},
      {"UPDATE reports SET episodes = CAST(episodes || x'07' AS BLOB)",
       "UPDATE reports SET episodes = substr(episodes, 1, length(episodes) - 1)", "report 1 has"},
      {"UPDATE ranges SET first_id = 259", "UPDATE ranges SET first_id = 256", "grid"},
      {"UPDATE ranges SET first_id = 512", "UPDATE ranges SET first_id = 256", "never issued"},
      {"UPDATE ranges SET session = 77", "UPDATE ranges SET session = 0", "session that has ended"},
      {"UPDATE ranges SET done = CAST(x'" + std::string(64, 'f') + "' AS BLOB)",
       "UPDATE ranges SET done = zeroblob(32)", "still listed"},
      {"CREATE TABLE aside AS SELECT * FROM ranges; DELETE FROM ranges",
       "INSERT INTO ranges SELECT * FROM aside", "counters"},
      {"UPDATE sessions SET process = 8", "UPDATE sessions SET process = 9", "process"},
      {"UPDATE processes SET steps_base = 71", "UPDATE processes SET steps_base = 0", "its base"},
      {"INSERT INTO sessions VALUES(4294967301, 1, 'b', 9, 1, 0, 0, '')",
       "DELETE FROM sessions WHERE name = 'b'", "two sessions"},
      {"UPDATE sessions SET role = 2; INSERT INTO processes VALUES(8, 0, 0, 0, 1);"
       "INSERT INTO sessions VALUES(4294967301, 2, 'b', 8, 0, 0, 0, '')",
       "UPDATE sessions SET role = 1; DELETE FROM processes WHERE process = 8;"
       "DELETE FROM sessions WHERE name = 'b'",
       "two learners"},
  };
  for (const auto& one : cases) {
    Execute(one.damage);
    const std::string error = LoadError();
    EXPECT_NE(error.find("contradicts itself"), std::string::npos) << one.damage;
    EXPECT_NE(error.find(one.part), std::string::npos) << one.damage << ": " << error;
    Execute(one.mend);
    EXPECT_EQ(LoadError(), "") << one.mend;
  }
}

TEST_F(StoreTest, FileThatIsNoDatabaseIsRefusedForGood) {
  EXPECT_EQ(LoadError(), "");
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  file.write(std::string(64, 'x').data(), 64);
  file.close();
  std::filesystem::remove(path() + "-wal");
  const std::string error = LoadError();
  EXPECT_NE(error.find(path() + " is damaged"), std::string::npos) << error;
  EXPECT_EQ(error.find("PRAGMA"), std::string::npos) << error;
}

TEST_F(StoreTest, FileThatCannotBeOpenedForNowIsTriedAgainOneThatNeverCanIsNot) {
  const auto code = [](const std::string& path) {
    try {
      const Database database(path);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::kOk;
  };
  EXPECT_EQ(code(path()), ExitCode::kOk);
  EXPECT_EQ(code(path() + "/no folder/x.db"), ExitCode::kUsage);
  EXPECT_EQ(code(std::filesystem::path(path()).parent_path()), ExitCode::kUsage);
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const testing::NoOpenFiles none;
  EXPECT_EQ(code(path()), ExitCode::kTryAgain);
}

TEST_F(StoreTest, FileOfAnOlderLayoutIsRefusedUntouched) {
  Execute(
      "CREATE TABLE run(id INTEGER PRIMARY KEY, layout INTEGER, run_id INTEGER, epoch INTEGER);"
      "INSERT INTO run VALUES(1, 1, 5, 7); CREATE TABLE counts(id INTEGER PRIMARY KEY)");
  EXPECT_THROW(Store{path()}, Error);
  EXPECT_EQ(Count("counts"), 0U);
}

TEST_F(StoreTest, LogIsFullAtTheSameBytesInFilesOfLargerPages) {
  Execute("PRAGMA page_size=16384; CREATE TABLE earlier(id INTEGER);");
  constexpr std::uint64_t kLogBytes = 40 * 16384, kOneChange = 16 * 16384;
  Store store(path(), {.log_bytes = kLogBytes});
  static_cast<void>(store.Load(4));
  ASSERT_EQ(Database(path()).Setting("page_size"), 16384U);
  for (std::uint64_t i = 0; !store.LogIsFull(); ++i) {
    ASSERT_LT(store.LogBytes(), kLogBytes);
    ASSERT_EQ(store.Commit({{FullRange(i)}}), CommitResult::kOk);
  }
  EXPECT_GE(store.LogBytes(), kLogBytes);
  EXPECT_LT(store.LogBytes(), kLogBytes + kOneChange);
}

// Three ranges were issued, the first two are all done; the first and its episodes are removed.
constexpr const char* kFileOfLayoutThree =
    "CREATE TABLE run(id INTEGER PRIMARY KEY, layout INTEGER, run_id INTEGER, epoch INTEGER);"
    "CREATE TABLE counts("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), issued INTEGER, done INTEGER, free_again INTEGER,"
    "  duplicates INTEGER, refused INTEGER, abandoned INTEGER, freed INTEGER, next_token INTEGER,"
    "  next_session INTEGER, env_steps INTEGER, version_first INTEGER, version_limit INTEGER,"
    "  return_best REAL, steps_forgotten INTEGER, episodes_pruned INTEGER, ranges_pruned INTEGER);"
    "CREATE TABLE ranges("
    "  first_id INTEGER PRIMARY KEY, attempt INTEGER, session INTEGER, grant_request INTEGER,"
    "  complete INTEGER, done BLOB, abandoned BLOB);"
    "CREATE INDEX open_ranges ON ranges(first_id) WHERE complete = 0;"
    "CREATE INDEX complete_ranges ON ranges(first_id) WHERE complete = 1;"
    "CREATE TABLE reports("
    "  id INTEGER PRIMARY KEY, session INTEGER, run_id INTEGER, batch INTEGER, count INTEGER,"
    "  episodes BLOB);"
    "INSERT INTO run VALUES(1, 3, 5, 7);"
    "INSERT INTO counts VALUES(1, 768, 512, 256, 0, 0, 0, 0, 768, 1, 0, 1, 1, 2.5, 0, 256, 1);"
    "INSERT INTO ranges VALUES(256, 1, 0, 0, 1, zeroblob(32), zeroblob(32));"
    "INSERT INTO ranges VALUES(512, 3, 0, 0, 0, zeroblob(32), zeroblob(32));";

// An older release must refuse the file from then on. Layout 2 had reports as arrays only.
TEST_F(StoreTest, FileOfAnOlderLayoutIsReadAndBecomesOneOfThePresentLayout) {
  std::vector<wire::EpisodeReport> episodes = FullRange(1).report->episodes;
  std::string hex;
  for (const std::byte byte : std::as_bytes(std::span(episodes))) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto value = static_cast<unsigned>(byte);
    hex += {kDigits[value >> 4], kDigits[value & 15]};
  }
  for (const std::string layout : {"2", "3"}) {
    std::filesystem::remove(path());
    Execute(kFileOfLayoutThree + ("INSERT INTO reports VALUES(2, 1, 5, 2, 256, x'" + hex + "');"));
    Execute("UPDATE run SET layout = " + layout);
    const StoredRun run = Store(path()).Load(4);
    EXPECT_EQ(run.epoch, 8U);
    EXPECT_EQ(run.counts.return_best, 2.5);
    ASSERT_EQ(run.open_ranges.size(), 1U);
    EXPECT_EQ(run.open_ranges[0], (LedgerRange{.first_id = 512, .attempt = 3}));
    ASSERT_EQ(run.last_episodes.size(), Store::kLastEpisodes);
    EXPECT_EQ(run.last_episodes.back().length_steps, episodes.back().length_steps);
    {
      Database database(path());
      Statement raised(database, "SELECT layout FROM run");
      ASSERT_TRUE(raised.Next());
      EXPECT_EQ(raised.Integer(0), kStoreLayout);
    }
    EXPECT_EQ(Count("ranges"), 1U);
    Store store(path());
    EXPECT_EQ(store.Load(4).epoch, 9U);
    StoreChange change = FullRange(2);
    change.counts.tokens.done = 768;
    ASSERT_EQ(store.Commit({{change}}), CommitResult::kOk);
    EXPECT_EQ(LoadError(), "");
  }
}

TEST_F(StoreTest, FileOfAnOlderLayoutThatAnotherProcessHoldsIsTakenOverLaterWhole) {
  Execute(kFileOfLayoutThree);
  Execute(
      "UPDATE counts SET done = 256, issued = 512, next_token = 512; DELETE FROM ranges WHERE "
      "complete = 1; UPDATE ranges SET first_id = 256");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(other, "PRAGMA journal_mode=WAL; BEGIN IMMEDIATE", nullptr, nullptr, nullptr),
      SQLITE_OK);
  try {
    Store store(path());
    ADD_FAILURE() << "a locked file was taken over";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  }
  ASSERT_EQ(sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_EQ(LoadError(), "");
  EXPECT_EQ(Count("ranges"), 1U);
}

TEST_F(StoreTest, FileOfAnOlderLayoutWhoseTablesAreOthersIsRefusedUntouched) {
  Execute(kFileOfLayoutThree);
  Execute("ALTER TABLE counts DROP COLUMN ranges_pruned");
  const std::string error = LoadError();
  EXPECT_NE(error.find("of layout 3 cannot be made one of layout 4"), std::string::npos) << error;
  EXPECT_EQ(Count("ranges"), 2U);
  EXPECT_EQ(Count("sqlite_master WHERE name IN ('open_ranges', 'complete_ranges')"), 2U);
  EXPECT_EQ(Count("pragma_table_info('ranges') WHERE name = 'complete'"), 1U);
  EXPECT_EQ(Count("run WHERE layout = 3"), 1U);
}

// Its build was killed between the tables and the row of `run`, which was to be the last.
TEST_F(StoreTest, FileOfAnOlderLayoutThatWasNeverFinishedIsMadeOneOfThePresent) {
  Execute(kFileOfLayoutThree);
  Execute("DELETE FROM run; DELETE FROM counts; DELETE FROM ranges");
  EXPECT_EQ(LoadError(), "");
  EXPECT_EQ(Count("run WHERE layout = 4"), 1U);
}

TEST_F(StoreTest, FileOfAnOlderLayoutThatLacksTablesIsMadeOneOfThePresent) {
  Execute(kFileOfLayoutThree);
  Execute("DELETE FROM run; DELETE FROM counts; DROP TABLE ranges; DROP TABLE reports");
  EXPECT_EQ(LoadError(), "");
  EXPECT_EQ(Count("run WHERE layout = 4"), 1U);
}

// The newest state of a range within a group holds, whatever the order of changes and ranges.
TEST_F(StoreTest, RangeThatChangesOftenInAGroupIsStoredAsItIsAtLast) {
  Store store(path());
  store.Load(4);
  std::vector<StoreChange> group(3);
  group[0].ranges = {{.first_id = 512, .attempt = 1}, {.first_id = 0, .attempt = 1}};
  group[1].ranges = {{.first_id = 256, .attempt = 1}, {.first_id = 512, .attempt = 2}};
  group[2].ranges = {{.first_id = 512, .attempt = 3}, {.first_id = 0, .attempt = 1}};
  group[2].ranges[1].done = ~Bits256{};  // issued and all done within the group: never a row
  group[2].counts = {.tokens = {.issued = 768, .free_again = 512}, .next_token = 768};
  ASSERT_EQ(store.Commit(group), CommitResult::kOk);
  Database database(path());
  Statement rows(database, "SELECT first_id, attempt FROM ranges ORDER BY first_id");
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Integer(0), 256U);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.Integer(0), 512U);
  EXPECT_EQ(rows.Integer(1), 3U);
  EXPECT_FALSE(rows.Next());
}

}  // namespace
}  // namespace tetrion::coordinator
