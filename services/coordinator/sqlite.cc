#include "services/coordinator/sqlite.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion::coordinator {
namespace {

constexpr int kBusyTimeoutMs = 1000;  // a reader's checkpoint may hold the file for a moment

// Whether the same call may succeed later without help from this process.
bool MayPass(int result) {
  switch (result & 0xff) {  // the primary code
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_PROTOCOL:
    case SQLITE_INTERRUPT:
      return true;
    default:
      return false;
  }
}

}  // namespace

Database::Database(const std::string& path) : path_(path) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &handle_, flags, nullptr) != SQLITE_OK) {
    const std::string reason = handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory";
    const int error = handle_ != nullptr ? sqlite3_system_errno(handle_) : ENOMEM;
    sqlite3_close(handle_);
    throw Error(CodeOfFault(error, ExitCode::kUsage),
                "cannot open the store " + path + ": " + reason +
                    (error != 0 ? std::string(": ") + std::strerror(error) : "") +
                    (IsSetUpWrong(error) ? "; the run folder must be writable"
                                         : "; check the disk and the limit of open files (ulimit "
                                           "-n), then start again with --resume"));
  }
  sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
  // In place of SQLite's own hook, which copies within a commit, after each one while a reader
  // keeps it from finishing.
  const auto note_pages = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Database*>(self)->log_pages_ = pages;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(handle_, note_pages, this);
}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

void Database::Fail(const std::string& what) {
  switch (sqlite3_errcode(handle_) & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw Error(ExitCode::kConfig, "store " + path_ + " is damaged: " + sqlite3_errmsg(handle_) +
                                         "; restore a copy of the run's folder, or start a new "
                                         "run");
    case SQLITE_READONLY:
      throw Error(ExitCode::kConfig, "store " + path_ +
                                         " cannot be written: " + sqlite3_errmsg(handle_) +
                                         "; make the run's folder writable, then start again "
                                         "with --resume");
    default:
      break;
  }
  throw Error(ExitCode::kTryAgain, "store " + path_ + ": " + what + ": " + sqlite3_errmsg(handle_) +
                                       "; check the disk, then start again with --resume");
}

void Database::Judge(int result, const char* what) {
  if (MayPass(result)) throw StorePaused{sqlite3_errmsg(handle_)};
  Fail(what);
}

void Database::Execute(const std::string& sql) {
  const int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) Judge(result, sql.c_str());
}

std::uint64_t Database::Setting(const std::string& name) {
  Statement pragma(*this, ("PRAGMA " + name).c_str());
  return pragma.Next() ? pragma.Integer(0) : 0;
}

bool Database::CopyLog(bool truncate) {
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int pages = 0, copied = 0;
  sqlite3_busy_timeout(handle_, kLogWaitMs);
  const int result = sqlite3_wal_checkpoint_v2(handle_, nullptr, mode, &pages, &copied);
  sqlite3_busy_timeout(handle_, kBusyTimeoutMs);
  if (result != SQLITE_OK || copied < pages) return false;
  log_pages_ = 0;
  return true;
}

bool Database::RollBack() {
  // SQLite may have rolled back by itself.
  if (sqlite3_get_autocommit(handle_) == 0) {
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  return sqlite3_get_autocommit(handle_) != 0;
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  const int result = sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr);
  if (result != SQLITE_OK) database.Judge(result, sql);
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

// Ids stay below 2^63; SQLite's integers are signed.
Statement& Statement::Bind(std::uint64_t value) {
  sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(value));
  return *this;
}

Statement& Statement::Bind(double value) {
  sqlite3_bind_double(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                    SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::BindBytes(const void* bytes, std::size_t size) {
  sqlite3_bind_blob(statement_, ++bound_, bytes, static_cast<int>(size), SQLITE_STATIC);
  return *this;
}

void Statement::Reset() {
  sqlite3_reset(statement_);
  bound_ = 0;
}

void Statement::Run() {
  const int result = sqlite3_step(statement_);
  Reset();
  if (result != SQLITE_DONE && result != SQLITE_ROW) {
    database_.Judge(result, sqlite3_sql(statement_));
  }
}

bool Statement::Next() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  Reset();
  if (result != SQLITE_DONE) database_.Judge(result, sqlite3_sql(statement_));
  return false;
}

std::uint64_t Statement::Integer(int column) const {
  return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
}

double Statement::Real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string Statement::Text(int column) const {
  const std::span<const std::byte> bytes = Bytes(column);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  return {static_cast<const std::byte*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

}  // namespace tetrion::coordinator
