#include "services/coordinator/store_schema.h"

#include "lib/core/error.h"

namespace tetrion::coordinator {
namespace {

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

// `ranges` has those of which a token is not done; a range below counts.next_token without a row is
// all done. The done bits and the episodes in `reports` are written in one transaction and agree at
// all times: counts.done = episodes in reports + counts.episodes_pruned. `reports.episodes` is
// described in episode_blob.h.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS run("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), layout INTEGER, run_id INTEGER, epoch INTEGER);"
    "CREATE TABLE IF NOT EXISTS counts("
    "  id INTEGER PRIMARY KEY CHECK(id = 1), issued INTEGER, done INTEGER, free_again INTEGER,"
    "  duplicates INTEGER, refused INTEGER, abandoned INTEGER, freed INTEGER, next_token INTEGER,"
    "  next_session INTEGER, env_steps INTEGER, version_first INTEGER, version_limit INTEGER,"
    "  return_best REAL, steps_forgotten INTEGER, episodes_pruned INTEGER);"
    "CREATE TABLE IF NOT EXISTS ranges("
    "  first_id INTEGER PRIMARY KEY, attempt INTEGER, session INTEGER, grant_request INTEGER,"
    "  done BLOB, abandoned BLOB);"
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

constexpr const char* kFromOlderLayout =
    "BEGIN IMMEDIATE;"
    "DROP INDEX IF EXISTS open_ranges; DROP INDEX IF EXISTS complete_ranges;"
    "DELETE FROM ranges WHERE complete = 1;"
    "ALTER TABLE ranges DROP COLUMN complete;"
    "ALTER TABLE counts DROP COLUMN ranges_pruned;"
    "UPDATE run SET layout = ";

// The present one where the file does not say.
std::uint64_t LayoutOf(Database& database) {
  Statement tables(database, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'run'");
  if (!tables.Next()) return kStoreLayout;
  Statement layout(database, "SELECT layout FROM run");
  return layout.Next() ? layout.Integer(0) : kStoreLayout;
}

bool Any(Database& database, const char* query) {
  return Statement(database, query).Next();
}

// Also where a build of that time was killed before it had noted its layout.
bool HasTablesOfOlderLayouts(Database& database) {
  return Any(database, "SELECT 1 FROM pragma_table_info('ranges') WHERE name = 'complete'");
}

// Or before it had made the second of its tables: nothing was in the first one then.
void DropTableOfOlderLayouts(Database& database) {
  if (!Any(database, "SELECT 1 FROM pragma_table_info('counts') WHERE name = 'ranges_pruned'")) {
    return;
  }
  if (Any(database, "SELECT 1 FROM counts")) return;
  if (Any(database, "SELECT 1 FROM sqlite_master WHERE name = 'ranges'")) return;
  database.Execute("DROP TABLE counts");
}

void MakePresentLayout(Database& database, std::uint64_t layout) {
  try {
    database.Execute(kFromOlderLayout + std::to_string(kStoreLayout) + "; COMMIT;");
  } catch (const Error& error) {
    static_cast<void>(database.RollBack());
    if (error.code() == ExitCode::kConfig) throw;  // damaged, or not to be written
    throw Error(ExitCode::kConfig,
                "store " + database.path() + " of layout " + std::to_string(layout) +
                    " cannot be made one of layout " + std::to_string(kStoreLayout) +
                    ": its tables are not those of its layout; it was edited: restore a copy of "
                    "the run's folder, or resume the run with the release that made it");
  }
}

}  // namespace

void PrepareTables(Database& database) {
  database.Execute(kPragmas);
  const std::uint64_t layout = LayoutOf(database);
  if (layout < kOldestStoreLayout || layout > kStoreLayout) {
    throw Error(ExitCode::kConfig, "store " + database.path() + " has layout " +
                                       std::to_string(layout) + ", this build reads " +
                                       std::to_string(kOldestStoreLayout) + " to " +
                                       std::to_string(kStoreLayout) +
                                       ": resume the run with the release that made it");
  }
  if (HasTablesOfOlderLayouts(database)) MakePresentLayout(database, layout);
  DropTableOfOlderLayouts(database);
  database.Execute(kSchema);
}

}  // namespace tetrion::coordinator
