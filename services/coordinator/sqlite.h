#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tetrion::coordinator {

// A fault that may pass: a full disk, an exceeded quota, an I/O error, a lock that another process
// holds, no memory, no file descriptors. Store::Commit turns it into a result, a start into an
// Error(kTryAgain); it never leaves the store.
struct StorePaused {
  std::string reason;
};

// The few calls of SQLite that the store needs. Faults that may pass throw StorePaused, all others
// Error(kTryAgain). One thread.
class Database {
 public:
  // Throws Error where the file cannot be opened: kUsage, or kTryAgain for what may pass.
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs statements without results. Throws StorePaused for what may pass by itself.
  void Execute(const std::string& sql);
  // A number that PRAGMA tells by this name; 0: none.
  std::uint64_t Setting(const std::string& name);
  // Undoes what an interrupted transaction has left; false when even that must be tried again.
  [[nodiscard]] bool RollBack();
  [[noreturn]] void Fail(const std::string& what);
  // Pages of the write-ahead log, as of the last commit, that may not be in the file yet. Nothing
  // copies them but CopyLog.
  int log_pages() const { return log_pages_; }
  // Copies the log into the file as far as readers of older states allow. True: all of it, so that
  // the next commit begins the log anew. `truncate`: waits for readers, at most kLogWaitMs, and
  // empties the log's file as well. Whatever keeps it from that is no fault: it is tried again.
  bool CopyLog(bool truncate);
  static constexpr int kLogWaitMs = 100;
  // After a call that failed with `result`: throws StorePaused or Error.
  [[noreturn]] void Judge(int result, const char* what);
  sqlite3* handle() { return handle_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  sqlite3* handle_ = nullptr;
  int log_pages_ = 0;
};

// A prepared statement. Values are bound from 1 in the order of the calls.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(std::uint64_t value);
  Statement& Bind(double value);
  Statement& Bind(std::string_view text);
  // The bytes must live until Run.
  Statement& BindBytes(const void* bytes, std::size_t size);
  // Executes without a result and resets.
  void Run();
  // Steps to the next row; false at the end, which resets.
  bool Next();
  // Ends a walk before its end.
  void Reset();
  std::uint64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::span<const std::byte> Bytes(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace tetrion::coordinator
