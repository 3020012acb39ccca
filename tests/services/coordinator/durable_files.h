#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace tetrion::coordinator {

// What a loss of power leaves of SQLite's files: SQLite's default file system while this object
// lives, except that it keeps, beside each database and WAL of `folder`, a copy of its content as
// of the last sync ("<file>.synced"), and that writes and syncs fail on demand. One at a time.
class DurableFiles {
 public:
  explicit DurableFiles(const std::string& folder) : folder_(folder) {
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = "durable";
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.xOpen = Open;
    self_ = this;
    EXPECT_EQ(sqlite3_vfs_register(&vfs_, /*makeDflt=*/1), SQLITE_OK);
  }
  ~DurableFiles() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(real_, 1);
    self_ = nullptr;
  }
  DurableFiles(const DurableFiles&) = delete;
  DurableFiles& operator=(const DurableFiles&) = delete;

  // Writes and syncs give this result code; SQLITE_OK: they work.
  void FailWrites(int code) { failure_ = code; }
  // The database as it would be found after the power is back; the path of the copy.
  std::string LosePower(const std::string& name) {
    const std::string copy = folder_ + "/after-" + std::to_string(++losses_) + ".db";
    for (const char* suffix : {"", "-wal"}) {
      const std::string synced = folder_ + "/" + name + suffix + ".synced";
      if (std::filesystem::exists(synced)) std::filesystem::copy_file(synced, copy + suffix);
    }
    return copy;
  }

 private:
  struct File {
    sqlite3_file base;
    sqlite3_io_methods methods;
    std::string* path;
    sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
  };
  static File& Of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }

  static int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    File& ours = Of(file);
    std::memset(static_cast<void*>(&ours), 0, sizeof ours);
    const int result = self_->real_->xOpen(self_->real_, name, ours.real(), flags, out);
    if (result != SQLITE_OK) return result;
    ours.path = new std::string(name == nullptr ? "" : name);
    // The real methods, each given the real file; ours for those that matter.
    ours.methods = *ours.real()->pMethods;
    ours.methods.iVersion = ours.real()->pMethods->iVersion;
    ours.methods.xClose = [](sqlite3_file* f) {
      delete Of(f).path;
      return Of(f).real()->pMethods->xClose(Of(f).real());
    };
    ours.methods.xRead = [](sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
      return Of(f).real()->pMethods->xRead(Of(f).real(), to, n, at);
    };
    ours.methods.xWrite = [](sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
      if (self_->failure_ != SQLITE_OK) return self_->failure_;
      return Of(f).real()->pMethods->xWrite(Of(f).real(), from, n, at);
    };
    ours.methods.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
      return Of(f).real()->pMethods->xTruncate(Of(f).real(), size);
    };
    ours.methods.xSync = [](sqlite3_file* f, int how) {
      if (self_->failure_ != SQLITE_OK) return self_->failure_;
      const int result = Of(f).real()->pMethods->xSync(Of(f).real(), how);
      if (!Of(f).path->empty()) {
        std::filesystem::copy_file(*Of(f).path, *Of(f).path + ".synced",
                                   std::filesystem::copy_options::overwrite_existing);
      }
      return result;
    };
    ours.methods.xFileSize = [](sqlite3_file* f, sqlite3_int64* size) {
      return Of(f).real()->pMethods->xFileSize(Of(f).real(), size);
    };
    ours.methods.xLock = [](sqlite3_file* f, int how) {
      return Of(f).real()->pMethods->xLock(Of(f).real(), how);
    };
    ours.methods.xUnlock = [](sqlite3_file* f, int how) {
      return Of(f).real()->pMethods->xUnlock(Of(f).real(), how);
    };
    ours.methods.xCheckReservedLock = [](sqlite3_file* f, int* held) {
      return Of(f).real()->pMethods->xCheckReservedLock(Of(f).real(), held);
    };
    ours.methods.xFileControl = [](sqlite3_file* f, int op, void* argument) {
      return Of(f).real()->pMethods->xFileControl(Of(f).real(), op, argument);
    };
    ours.methods.xSectorSize = [](sqlite3_file* f) {
      return Of(f).real()->pMethods->xSectorSize(Of(f).real());
    };
    ours.methods.xDeviceCharacteristics = [](sqlite3_file* f) {
      return Of(f).real()->pMethods->xDeviceCharacteristics(Of(f).real());
    };
    ours.methods.xShmMap = [](sqlite3_file* f, int page, int bytes, int extend,
                              void volatile** at) {
      return Of(f).real()->pMethods->xShmMap(Of(f).real(), page, bytes, extend, at);
    };
    ours.methods.xShmLock = [](sqlite3_file* f, int offset, int n, int how) {
      return Of(f).real()->pMethods->xShmLock(Of(f).real(), offset, n, how);
    };
    ours.methods.xShmBarrier = [](sqlite3_file* f) {
      Of(f).real()->pMethods->xShmBarrier(Of(f).real());
    };
    ours.methods.xShmUnmap = [](sqlite3_file* f, int remove) {
      return Of(f).real()->pMethods->xShmUnmap(Of(f).real(), remove);
    };
    ours.methods.iVersion = 2;  // without memory-mapped pages
    ours.base.pMethods = &ours.methods;
    return SQLITE_OK;
  }

  static inline DurableFiles* self_ = nullptr;
  const std::string folder_;
  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs vfs_{};
  int failure_ = SQLITE_OK;
  int losses_ = 0;
};

}  // namespace tetrion::coordinator
