#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tetrion {

// The few calls of SQLite that the store needs, with errors as Error(kTryAgain). One thread.
class Database {
 public:
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs statements without results.
  void Execute(const std::string& sql);
  // The same, but a full disk gives false (for BEGIN, COMMIT and what lies between).
  [[nodiscard]] bool TryExecute(const std::string& sql);
  [[noreturn]] void Fail(const std::string& what);
  sqlite3* handle() { return handle_; }

 private:
  const std::string path_;
  sqlite3* handle_ = nullptr;
};

// Thrown by Statement::Run when the disk is full; Store::Commit turns it into a result. It never
// leaves the store.
struct StoreFull {};

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
  std::uint64_t Integer(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;
  std::span<const std::byte> Bytes(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

}  // namespace tetrion
