#include "services/coordinator/store_schema.h"

#include "lib/core/error.h"

namespace tetrion::coordinator {
namespace {

constexpr std::uint64_t kOldestLayout = 2;
// A transaction writes the whole of every page that it changes, also of tables with a few rows: the
// larger the pages, the more bytes. Much smaller ones would cut the blobs of reports, which are
// mostly less than 10 KiB, into many. A file keeps the page size that it was made with.
// The cache may take 16 MiB. That holds all that a run of CartPole keeps (Store::Config), so that
// old rows are removed without reading them from the file first.
constexpr const char* kPragmas =
    "PRAGMA page_size=8192;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16384;";

// Done bits of `ranges` and the episodes in `reports` are written in one transaction and agree at
// all times: counts.done = episodes in reports + counts.episodes_pruned, and counts.next_token /
// 256 = rows of ranges + counts.ranges_pruned. `reports.episodes` is described in episode_blob.h.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS run("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), layout INTEGER, run_id INTEGER, epoch INTEGER);"
    "CREATE TABLE IF NOT EXISTS counts("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), issued INTEGER, done INTEGER, free_again INTEGER,"
    "  duplicates INTEGER, refused INTEGER, abandoned INTEGER, freed INTEGER, next_token INTEGER,"
    "  next_session INTEGER, env_steps INTEGER, version_first INTEGER, version_limit INTEGER,"
    "  return_best REAL, steps_forgotten INTEGER, episodes_pruned INTEGER, ranges_pruned INTEGER);"
    "CREATE TABLE IF NOT EXISTS ranges("
    "  first_id INTEGER PRIMARY KEY, attempt INTEGER, session INTEGER, grant_request INTEGER,"
    "  complete INTEGER, done BLOB, abandoned BLOB);"
    "CREATE INDEX IF NOT EXISTS open_ranges ON ranges(first_id) WHERE complete = 0;"
    "CREATE INDEX IF NOT EXISTS complete_ranges ON ranges(first_id) WHERE complete = 1;"
    "CREATE TABLE IF NOT EXISTS reports("
    "  id INTEGER PRIMARY KEY, session INTEGER, run_id INTEGER, batch INTEGER, count INTEGER,"
    "  episodes BLOB);"
    "CREATE TABLE IF NOT EXISTS sessions("
    "  session INTEGER PRIMARY KEY, role INTEGER, name TEXT, process INTEGER, workers INTEGER,"
    "  last_request INTEGER, region_held INTEGER, http TEXT);"
    "CREATE TABLE IF NOT EXISTS processes("
    "  process INTEGER PRIMARY KEY, env_steps INTEGER, steps_base INTEGER,"
    "  tokens_granted INTEGER, base_known INTEGER);"
    "CREATE TABLE IF NOT EXISTS slots("
    "  slot INTEGER PRIMARY KEY, state INTEGER, session INTEGER, process INTEGER, worker INTEGER,"
    "  path TEXT, departed INTEGER);"
    // A table of its own, so that files from before it are of the same layout.
    "CREATE TABLE IF NOT EXISTS served(id INTEGER PRIMARY KEY CHECK(id = 1), seconds REAL);";

// A file whose layout this build does not know is refused before a table is touched.
void CheckLayout(Database& database) {
  Statement tables(database, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'run'");
  if (!tables.Next()) return;
  Statement layout(database, "SELECT layout FROM run");
  if (!layout.Next()) return;
  if (layout.Integer(0) >= kOldestLayout && layout.Integer(0) <= kStoreLayout) return;
  throw Error(ExitCode::kConfig, "store " + database.path() + " has layout " +
                                     std::to_string(layout.Integer(0)) + ", this build needs " +
                                     std::to_string(kStoreLayout) +
                                     ": resume the run with the release that made it");
}

}  // namespace

void PrepareTables(Database& database) {
  database.Execute(kPragmas);
  CheckLayout(database);
  database.Execute(kSchema);
}

}  // namespace tetrion::coordinator
