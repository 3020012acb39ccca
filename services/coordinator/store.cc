#include "services/coordinator/store.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include "lib/core/error.h"
#include "services/coordinator/sqlite.h"

namespace tetrion {
namespace {

// Raised with every change of the tables; an older file is refused.
constexpr std::uint64_t kLayout = 1;
constexpr int kNoPageLimit = 0x3fffffff;
// Report batches are blobs of up to 32 KiB: large pages keep them out of long overflow chains.
constexpr const char* kPragmas =
    "PRAGMA page_size=16384;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA wal_autocheckpoint=2000;";

// `ranges` keeps every range ever granted; its done bits and the episodes in `reports` are written
// in one transaction and agree at all times. `reports.episodes` is an array of wire::EpisodeReport.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS run("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), layout INTEGER, run_id INTEGER, epoch INTEGER);"
    "CREATE TABLE IF NOT EXISTS counts("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), issued INTEGER, done INTEGER, free_again INTEGER,"
    "  duplicates INTEGER, refused INTEGER, abandoned INTEGER, freed INTEGER, next_token INTEGER,"
    "  next_session INTEGER, env_steps INTEGER, version_first INTEGER, version_limit INTEGER,"
    "  return_best REAL);"
    "CREATE TABLE IF NOT EXISTS ranges("
    "  first_id INTEGER PRIMARY KEY, attempt INTEGER, session INTEGER, grant_request INTEGER,"
    "  complete INTEGER, done BLOB, abandoned BLOB);"
    "CREATE INDEX IF NOT EXISTS open_ranges ON ranges(first_id) WHERE complete = 0;"
    "CREATE TABLE IF NOT EXISTS reports("
    "  id INTEGER PRIMARY KEY, session INTEGER, batch INTEGER, count INTEGER, episodes BLOB);"
    "CREATE TABLE IF NOT EXISTS sessions("
    "  session INTEGER PRIMARY KEY, role INTEGER, name TEXT, nonce INTEGER, http TEXT,"
    "  env_steps INTEGER, env_steps_known INTEGER, ended INTEGER);"
    "CREATE TABLE IF NOT EXISTS slots("
    "  slot INTEGER PRIMARY KEY, state INTEGER, session INTEGER, worker INTEGER, path TEXT,"
    "  departed INTEGER);";

Bits256 ReadBits(std::span<const std::byte> bytes) {
  Bits256 bits;
  if (bytes.size() == sizeof(bits)) std::memcpy(&bits, bytes.data(), sizeof(bits));
  return bits;
}

}  // namespace

struct Store::Impl {
  explicit Impl(const std::string& path) : database(path), tables(database) {}

  // Before the statements below, which name the tables.
  struct Tables {
    explicit Tables(Database& database) {
      database.Execute(kPragmas);
      database.Execute(kSchema);
    }
  };

  Database database;
  Tables tables;
  int page_limit = 0;
  // Prepared once: the hot ones run thousands of times a second.
  Statement put_range{database, "REPLACE INTO ranges VALUES(?,?,?,?,?,?,?)"};
  Statement put_report{database,
                       "INSERT INTO reports(session, batch, count, episodes) VALUES(?,?,?,?)"};
  Statement put_counts{database, "REPLACE INTO counts VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?)"};
  Statement put_session{database, "REPLACE INTO sessions VALUES(?,?,?,?,?,?,?,0)"};
  Statement end_session{database, "UPDATE sessions SET ended = 1 WHERE session = ?"};
  Statement put_slot{database, "REPLACE INTO slots VALUES(?,?,?,?,?,?)"};
};

Store::Store(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  Statement layout(impl_->database, "SELECT layout FROM run");
  if (layout.Next() && layout.Integer(0) != kLayout) {
    throw Error(ExitCode::kConfig, "store " + path + " has layout " +
                                       std::to_string(layout.Integer(0)) + ", this build needs " +
                                       std::to_string(kLayout) +
                                       ": resume the run with the release that made it");
  }
}

Store::~Store() = default;

StoredRun Store::Load(std::uint64_t fresh_run_id) {
  Database& database = impl_->database;
  // Ids travel through signed columns: the top bit stays clear.
  Statement create(database, "INSERT OR IGNORE INTO run VALUES(1, ?, ?, 0)");
  create.Bind(kLayout).Bind(fresh_run_id >> 1).Run();
  database.Execute("UPDATE run SET epoch = epoch + 1");
  StoredRun run;
  {
    Statement read(database, "SELECT run_id, epoch FROM run");
    if (!read.Next()) database.Fail("the run's row is missing");
    run.run_id = read.Integer(0);
    run.epoch = read.Integer(1);
  }
  ReadCounts(run);
  ReadMembers(run);
  ReadEpisodes(run);
  return run;
}

void Store::ReadCounts(StoredRun& run) {
  Statement counts(impl_->database, "SELECT * FROM counts");
  if (counts.Next()) {
    run.counts.tokens = {.issued = counts.Integer(1),
                         .done = counts.Integer(2),
                         .free_again = counts.Integer(3),
                         .duplicates = counts.Integer(4),
                         .refused = counts.Integer(5),
                         .abandoned = counts.Integer(6),
                         .freed = counts.Integer(7)};
    run.counts.next_token = counts.Integer(8);
    run.counts.next_session = counts.Integer(9);
    run.counts.env_steps = counts.Integer(10);
    run.counts.version_first = static_cast<std::uint32_t>(counts.Integer(11));
    run.counts.version_limit = static_cast<std::uint32_t>(counts.Integer(12));
    run.counts.return_best = counts.Real(13);
  }
  Statement ranges(impl_->database,
                   "SELECT first_id, attempt, session, grant_request, done, abandoned"
                   " FROM ranges WHERE complete = 0 ORDER BY first_id");
  while (ranges.Next()) {
    run.open_ranges.push_back({.first_id = ranges.Integer(0),
                               .attempt = static_cast<std::uint32_t>(ranges.Integer(1)),
                               .session = ranges.Integer(2),
                               .grant = ranges.Integer(3),
                               .done = ReadBits(ranges.Bytes(4)),
                               .abandoned = ReadBits(ranges.Bytes(5))});
  }
}

void Store::ReadMembers(StoredRun& run) {
  Statement sessions(impl_->database,
                     "SELECT session, role, name, nonce, http, env_steps, env_steps_known"
                     " FROM sessions WHERE ended = 0 ORDER BY session");
  while (sessions.Next()) {
    Session session;
    session.number = sessions.Integer(0);
    session.role = static_cast<wire::Role>(sessions.Integer(1));
    session.name = sessions.Text(2);
    session.nonce = sessions.Integer(3);
    session.http_endpoint = sessions.Text(4);
    session.env_steps = sessions.Integer(5);
    session.env_steps_known = sessions.Integer(6) != 0;
    run.sessions.push_back(std::move(session));
  }
  Statement slots(impl_->database,
                  "SELECT state, session, worker, path, departed FROM slots ORDER BY slot");
  while (slots.Next()) {
    run.slots.push_back({.state = static_cast<Slot::State>(slots.Integer(0)),
                         .session = slots.Integer(1),
                         .worker = static_cast<std::uint32_t>(slots.Integer(2)),
                         .path = slots.Text(3),
                         .departed = slots.Integer(4)});
  }
}

void Store::ReadEpisodes(StoredRun& run) {
  Statement reports(impl_->database, "SELECT episodes FROM reports ORDER BY id DESC LIMIT ?");
  reports.Bind(std::uint64_t{kLastEpisodes});
  std::vector<wire::EpisodeReport>& last = run.last_episodes;
  while (last.size() < kLastEpisodes && reports.Next()) {
    const std::span<const std::byte> bytes = reports.Bytes(0);
    std::vector<wire::EpisodeReport> batch(bytes.size() / sizeof(wire::EpisodeReport));
    std::memcpy(batch.data(), bytes.data(), batch.size() * sizeof(wire::EpisodeReport));
    last.insert(last.begin(), batch.begin(), batch.end());
  }
  if (last.size() > kLastEpisodes) {
    last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(kLastEpisodes));
  }
}

void Store::Write(const StoreChange& change) {
  for (const LedgerRange& range : change.ranges) {
    impl_->put_range.Bind(range.first_id).Bind(std::uint64_t{range.attempt}).Bind(range.session);
    impl_->put_range.Bind(range.grant).Bind(std::uint64_t{range.done.All()});
    impl_->put_range.BindBytes(&range.done, sizeof(Bits256));
    impl_->put_range.BindBytes(&range.abandoned, sizeof(Bits256)).Run();
  }
  if (change.report.has_value() && !change.report->episodes.empty()) {
    const ReportRow& row = *change.report;
    impl_->put_report.Bind(row.session).Bind(row.batch).Bind(row.episodes.size());
    impl_->put_report
        .BindBytes(row.episodes.data(), row.episodes.size() * sizeof(wire::EpisodeReport))
        .Run();
  }
  for (const Session& session : change.sessions) {
    impl_->put_session.Bind(session.number).Bind(static_cast<std::uint64_t>(session.role));
    impl_->put_session.Bind(session.name).Bind(session.nonce).Bind(session.http_endpoint);
    impl_->put_session.Bind(session.env_steps).Bind(std::uint64_t{session.env_steps_known}).Run();
  }
  for (const std::uint64_t number : change.ended) impl_->end_session.Bind(number).Run();
  if (!change.slots.has_value()) return;
  for (std::size_t i = 0; i < change.slots->size(); ++i) {
    const Slot& slot = (*change.slots)[i];
    impl_->put_slot.Bind(std::uint64_t{i}).Bind(static_cast<std::uint64_t>(slot.state));
    impl_->put_slot.Bind(slot.session).Bind(std::uint64_t{slot.worker}).Bind(slot.path);
    impl_->put_slot.Bind(slot.departed).Run();
  }
}

CommitResult Store::Commit(std::span<const StoreChange> changes) {
  if (changes.empty()) return CommitResult::kOk;
  Database& database = impl_->database;
  const int limit = page_limit_.load(std::memory_order_relaxed);
  if (limit != impl_->page_limit) {
    // A limit below the present size counts as that size.
    database.Execute("PRAGMA max_page_count=" + std::to_string(limit > 0 ? limit : kNoPageLimit));
    impl_->page_limit = limit;
  }
  try {
    if (!database.TryExecute("BEGIN IMMEDIATE")) return CommitResult::kFull;
    for (const StoreChange& change : changes) Write(change);
    const RunCounts& counts = changes.back().counts;  // absolute: the last ones hold
    const LedgerCounts& tokens = counts.tokens;
    impl_->put_counts.Bind(tokens.issued).Bind(tokens.done).Bind(tokens.free_again);
    impl_->put_counts.Bind(tokens.duplicates).Bind(tokens.refused).Bind(tokens.abandoned);
    impl_->put_counts.Bind(tokens.freed).Bind(counts.next_token).Bind(counts.next_session);
    impl_->put_counts.Bind(counts.env_steps).Bind(std::uint64_t{counts.version_first});
    impl_->put_counts.Bind(std::uint64_t{counts.version_limit}).Bind(counts.return_best).Run();
    if (database.TryExecute("COMMIT")) return CommitResult::kOk;
  } catch (const StoreFull&) {
    // Rolled back below.
  }
  // SQLite may have rolled back by itself.
  if (sqlite3_get_autocommit(database.handle()) == 0) database.Execute("ROLLBACK");
  return CommitResult::kFull;
}

int Store::Pages() {
  Statement pages(impl_->database, "PRAGMA page_count");
  return pages.Next() ? static_cast<int>(pages.Integer(0)) : 0;
}

}  // namespace tetrion
