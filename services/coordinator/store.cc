#include "services/coordinator/store.h"

#include <algorithm>
#include <cstring>

#include "lib/core/error.h"
#include "services/coordinator/episode_blob.h"
#include "services/coordinator/sqlite.h"
#include "services/coordinator/store_schema.h"
#include "services/coordinator/stored_check.h"

namespace tetrion::coordinator {
namespace {

constexpr int kNoPageLimit = 0x3fffffff;
// Rows that a transaction removes at most, so that none takes long; or twice what it adds.
constexpr std::uint64_t kPruneRows = 256;

Bits256 ReadBits(std::span<const std::byte> bytes) {
  Bits256 bits;
  if (bytes.size() == sizeof(bits)) std::memcpy(&bits, bytes.data(), sizeof(bits));
  return bits;
}

std::string CannotUse(const std::string& path, const StorePaused& paused) {
  return "store " + path + " cannot be used: " + paused.reason +
         "; see to the disk (df -h, quota) or to the process that holds it, then start again";
}

}  // namespace

struct Store::Impl {
  explicit Impl(const std::string& path) : database(path), tables(database) {}

  // Before the statements below, which name the tables.
  struct Tables {
    explicit Tables(Database& database) { PrepareTables(database); }
  };

  Database database;
  Tables tables;
  const std::uint64_t log_page_bytes = database.Setting("page_size") + 24;  // with its header
  // States of ranges in the group being written, by their position in it.
  struct Written {
    std::uint64_t first_id = 0;
    std::size_t position = 0;
    const LedgerRange* range = nullptr;
  };
  std::vector<Written> written;
  std::vector<std::byte> blob;  // of the report being written
  int page_limit = 0;
  Durability durability = Durability::kPromise;
  // Prepared once: the hot ones run thousands of times a second.
  Statement put_range{database, "REPLACE INTO ranges VALUES(?,?,?,?,?,?)"};
  Statement drop_range{database, "DELETE FROM ranges WHERE first_id = ?"};
  Statement put_report{database, "INSERT INTO reports VALUES(NULL,?,?,?,?,?)"};
  Statement put_counts{database, "REPLACE INTO counts VALUES(1,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"};
  Statement put_served{database, "REPLACE INTO served VALUES(1,?)"};
  Statement put_session{database, "REPLACE INTO sessions VALUES(?,?,?,?,?,?,?,?)"};
  Statement end_session{database, "DELETE FROM sessions WHERE session = ?"};
  Statement put_process{database, "REPLACE INTO processes VALUES(?,?,?,?,?)"};
  Statement forget_process{database, "DELETE FROM processes WHERE process = ?"};
  Statement put_slot{database, "REPLACE INTO slots VALUES(?,?,?,?,?,?,?)"};
  Statement old_reports{database, "SELECT id, count FROM reports ORDER BY id LIMIT ?"};
  Statement drop_reports{database, "DELETE FROM reports WHERE id <= ?"};
};

Store::Store(const std::string& path, const Config& config) : config_(config) {
  try {
    impl_ = std::make_unique<Impl>(path);
  } catch (const StorePaused& paused) {
    throw Error(ExitCode::kTryAgain, CannotUse(path, paused));
  }
}

Store::~Store() = default;

StoredRun Store::Load(std::uint64_t fresh_run_id, bool has_trained) {
  Database& database = impl_->database;
  StoredRun run;
  std::string unreadable;
  try {
    if (has_trained) RefuseLostAccount();
    // Ids travel through signed columns: the top bit stays clear.
    Statement create(database, "INSERT OR IGNORE INTO run VALUES(1, ?, ?, 0)");
    create.Bind(kStoreLayout).Bind(fresh_run_id >> 1).Run();
    database.Execute("UPDATE run SET epoch = epoch + 1");
    {
      Statement read(database, "SELECT run_id, epoch FROM run");
      if (!read.Next()) database.Fail("the run's row is missing");
      run.run_id = read.Integer(0);
      run.epoch = read.Integer(1);
    }
    ReadCounts(run);
    ReadRanges(run);
    ReadMembers(run);
    unreadable = ReadEpisodes(run);
  } catch (const StorePaused& paused) {
    throw Error(ExitCode::kTryAgain, CannotUse(database.path(), paused));
  }
  const std::string contradiction =
      !unreadable.empty() ? unreadable : Contradiction(run, episodes_.kept + episodes_.pruned);
  if (!contradiction.empty()) {
    throw Error(ExitCode::kConfig, "store " + database.path() +
                                       " contradicts itself: " + contradiction +
                                       "; it was damaged or edited: restore a copy of the run's "
                                       "folder, or start a new run");
  }
  return run;
}

// A copy of the file alone lacks what is in the write-ahead log, which may be all. Who trains has
// joined before, and that was stored with the counts.
void Store::RefuseLostAccount() {
  Statement counts(impl_->database, "SELECT 1 FROM counts");
  if (counts.Next()) return;
  const std::string& path = impl_->database.path();
  throw Error(ExitCode::kConfig, "store " + path +
                                     " holds no account of a run that has checkpoints: it was "
                                     "copied without " +
                                     path +
                                     "-wal; restore both from a copy, or begin a new run with "
                                     "these weights: --init-from RUN");
}

void Store::ReadCounts(StoredRun& run) {
  Statement counts(impl_->database, "SELECT * FROM counts");
  if (!counts.Next()) return;
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
  run.counts.steps_forgotten = counts.Integer(14);
  episodes_.pruned = counts.Integer(15);
  Statement served(impl_->database, "SELECT seconds FROM served");
  if (served.Next()) run.counts.served_s = served_s_ = served.Real(0);
}

void Store::ReadRanges(StoredRun& run) {
  Statement ranges(impl_->database,
                   "SELECT first_id, attempt, session, grant_request, done, abandoned"
                   " FROM ranges ORDER BY first_id");
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
                     "SELECT session, role, name, process, workers, last_request, region_held, http"
                     " FROM sessions ORDER BY session");
  while (sessions.Next()) {
    Session session;
    session.number = sessions.Integer(0);
    session.role = static_cast<wire::Role>(sessions.Integer(1));
    session.name = sessions.Text(2);
    session.process = sessions.Integer(3);
    session.workers = static_cast<std::uint32_t>(sessions.Integer(4));
    session.last_request = sessions.Integer(5);
    session.region_held = sessions.Integer(6) != 0;
    session.http_endpoint = sessions.Text(7);
    run.sessions.push_back(std::move(session));
  }
  Statement processes(impl_->database,
                      "SELECT process, env_steps, steps_base, tokens_granted, base_known"
                      " FROM processes");
  while (processes.Next()) {
    run.processes.push_back({.number = processes.Integer(0),
                             .env_steps = processes.Integer(1),
                             .steps_base = processes.Integer(2),
                             .tokens_granted = processes.Integer(3),
                             .base_known = processes.Integer(4) != 0});
  }
  Statement slots(impl_->database,
                  "SELECT slot, state, session, process, worker, path, departed FROM slots"
                  " ORDER BY slot");
  while (slots.Next()) {
    const std::uint64_t number = slots.Integer(0);
    if (number >= wire::kMaxRings) break;
    run.slots.resize(number + 1);
    run.slots[number] = {.state = static_cast<Slot::State>(slots.Integer(1)),
                         .session = slots.Integer(2),
                         .process = slots.Integer(3),
                         .worker = static_cast<std::uint32_t>(slots.Integer(4)),
                         .path = slots.Text(5),
                         .departed = slots.Integer(6)};
  }
}

std::string Store::ReadEpisodes(StoredRun& run) {
  Statement sum(impl_->database, "SELECT SUM(count) FROM reports");
  if (sum.Next()) episodes_.kept = sum.Integer(0);
  Statement reports(impl_->database, "SELECT id, count, episodes FROM reports ORDER BY id DESC");
  std::vector<wire::EpisodeReport>& last = run.last_episodes;
  std::vector<wire::EpisodeReport> batch;
  while (last.size() < kLastEpisodes && reports.Next()) {
    if (!DecodeEpisodes(reports.Bytes(2), reports.Integer(1), batch)) {
      return "report " + reports.Text(0) + " has bytes that are not its " + reports.Text(1) +
             " episodes";
    }
    last.insert(last.begin(), batch.begin(), batch.end());
  }
  if (last.size() > kLastEpisodes) last.erase(last.begin(), last.end() - kLastEpisodes);
  return "";
}

// Writes the newest state of each range, in ascending order: neighbours are on the same page.
void Store::WriteRanges(std::span<const StoreChange> changes) {
  std::vector<Impl::Written>& written = impl_->written;
  written.clear();
  for (const StoreChange& change : changes) {
    for (const LedgerRange& range : change.ranges) {
      written.push_back({range.first_id, written.size(), &range});
    }
  }
  std::sort(written.begin(), written.end(), [](const Impl::Written& a, const Impl::Written& b) {
    return a.first_id != b.first_id ? a.first_id < b.first_id : a.position < b.position;
  });
  for (std::size_t i = 0; i < written.size(); ++i) {
    const LedgerRange& range = *written[i].range;
    if (i + 1 < written.size() && written[i + 1].first_id == range.first_id) continue;
    if (range.done.All()) {
      impl_->drop_range.Bind(range.first_id).Run();
      continue;
    }
    impl_->put_range.Bind(range.first_id).Bind(std::uint64_t{range.attempt}).Bind(range.session);
    impl_->put_range.Bind(range.grant).BindBytes(&range.done, sizeof(Bits256));
    impl_->put_range.BindBytes(&range.abandoned, sizeof(Bits256)).Run();
  }
}

void Store::Write(const StoreChange& change) {
  if (change.report.has_value() && !change.report->episodes.empty()) {
    const ReportRow& row = *change.report;
    episodes_.kept += row.episodes.size();
    impl_->put_report.Bind(row.session).Bind(row.run_id).Bind(row.batch);
    impl_->put_report.Bind(row.episodes.size());
    EncodeEpisodes(row.episodes, impl_->blob);
    impl_->put_report.BindBytes(impl_->blob.data(), impl_->blob.size()).Run();
  }
  WriteMembers(change);
}

void Store::WriteMembers(const StoreChange& change) {
  for (const Session& session : change.sessions) {
    impl_->put_session.Bind(session.number).Bind(static_cast<std::uint64_t>(session.role));
    impl_->put_session.Bind(session.name).Bind(session.process);
    impl_->put_session.Bind(std::uint64_t{session.workers}).Bind(session.last_request);
    impl_->put_session.Bind(std::uint64_t{session.region_held}).Bind(session.http_endpoint).Run();
  }
  for (const std::uint64_t number : change.ended) impl_->end_session.Bind(number).Run();
  for (const std::uint64_t number : change.forgotten) impl_->forget_process.Bind(number).Run();
  for (const Process& process : change.processes) {
    impl_->put_process.Bind(process.number).Bind(process.env_steps).Bind(process.steps_base);
    impl_->put_process.Bind(process.tokens_granted).Bind(std::uint64_t{process.base_known}).Run();
  }
  for (const auto& [number, slot] : change.slots) {
    impl_->put_slot.Bind(std::uint64_t{number}).Bind(static_cast<std::uint64_t>(slot.state));
    impl_->put_slot.Bind(slot.session).Bind(slot.process).Bind(std::uint64_t{slot.worker});
    impl_->put_slot.Bind(slot.path).Bind(slot.departed).Run();
  }
}

void Store::WriteCounts(const RunCounts& counts) {
  const LedgerCounts& tokens = counts.tokens;
  impl_->put_counts.Bind(tokens.issued).Bind(tokens.done).Bind(tokens.free_again);
  impl_->put_counts.Bind(tokens.duplicates).Bind(tokens.refused).Bind(tokens.abandoned);
  impl_->put_counts.Bind(tokens.freed).Bind(counts.next_token).Bind(counts.next_session);
  impl_->put_counts.Bind(counts.env_steps).Bind(std::uint64_t{counts.version_first});
  impl_->put_counts.Bind(std::uint64_t{counts.version_limit}).Bind(counts.return_best);
  impl_->put_counts.Bind(counts.steps_forgotten).Bind(episodes_.pruned).Run();
  if (counts.served_s < served_s_ + 1) return;  // groups come a thousand times a second
  served_s_ = counts.served_s;
  impl_->put_served.Bind(served_s_).Run();
}

// Removes what is older than the store keeps, a few rows at a time, after a group of `added` rows.
void Store::Prune(std::uint64_t added) {
  if (episodes_.kept <= config_.keep_episodes) return;
  std::uint64_t last_id = 0, removed = 0;
  impl_->old_reports.Bind(std::max(kPruneRows, 2 * added));
  while (impl_->old_reports.Next()) {
    const std::uint64_t count = impl_->old_reports.Integer(1);
    if (episodes_.kept - removed - count < config_.keep_episodes) {
      impl_->old_reports.Reset();
      break;
    }
    last_id = impl_->old_reports.Integer(0);
    removed += count;
  }
  if (removed > 0) impl_->drop_reports.Bind(last_id).Run();
  episodes_.kept -= removed;
  episodes_.pruned += removed;
}

void Store::WriteGroup(std::span<const StoreChange> changes) {
  Database& database = impl_->database;
  database.Execute("BEGIN IMMEDIATE");
  WriteRanges(changes);
  for (const StoreChange& change : changes) Write(change);
  Prune(changes.size());
  WriteCounts(changes.back().counts);  // absolute: the last ones hold
  database.Execute("COMMIT");
}

CommitResult Store::Commit(std::span<const StoreChange> changes, Durability durability) {
  if (changes.empty()) return CommitResult::kOk;
  Database& database = impl_->database;
  const Kept episodes = episodes_;
  const double served_s = served_s_;
  try {
    if (!database.RollBack()) throw StorePaused{"a transaction cannot be undone yet"};
    const int limit = page_limit_.load(std::memory_order_relaxed);
    if (limit != impl_->page_limit) {
      // A limit below the present size counts as that size.
      database.Execute("PRAGMA max_page_count=" + std::to_string(limit > 0 ? limit : kNoPageLimit));
      impl_->page_limit = limit;
    }
    if (durability != impl_->durability) {
      const bool promise = durability == Durability::kPromise;
      database.Execute(promise ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
      impl_->durability = durability;
    }
    WriteGroup(changes);
    return CommitResult::kOk;
  } catch (const StorePaused& paused) {
    pause_reason_ = paused.reason;
  }
  static_cast<void>(database.RollBack());  // tried again at the next commit
  episodes_ = episodes;
  served_s_ = served_s;
  return CommitResult::kPaused;
}

bool Store::LogIsFull() const {
  return LogBytes() >= config_.log_bytes;
}

bool Store::CopyLog() {
  return impl_->database.CopyLog(/*truncate=*/LogBytes() >= 2 * config_.log_bytes);
}

std::uint64_t Store::LogBytes() const {
  return static_cast<std::uint64_t>(impl_->database.log_pages()) * impl_->log_page_bytes;
}

int Store::Pages() {
  return static_cast<int>(impl_->database.Setting("page_count"));
}

}  // namespace tetrion::coordinator
