#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {

// Whether errno's value, after a call on a path, says what a person has to change. Anything else
// may pass by itself: a want of descriptors or memory, a full disk, a disk or a file server that
// fails.
[[nodiscard]] bool IsSetUpWrong(int error);
// What to end with after such a call: `wrong` where a person has to change something, else
// kTryAgain.
[[nodiscard]] inline ExitCode CodeOfFault(int error, ExitCode wrong) {
  return IsSetUpWrong(error) ? wrong : ExitCode::kTryAgain;
}

// Whether errno's value, after a call that makes a socket or gives it an address, is a want of
// descriptors or memory, which may pass.
[[nodiscard]] bool IsWantOfResources(int error);

// Owns a file descriptor and closes it.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Hands the descriptor to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// A file that takes its place by rename: readers of `path` see the old file or the whole new one,
// at any instant, also after a crash when the caller syncs. The steps, in order: Create, Write (or
// a library that writes to the descriptor), Sync, Place, SyncFolder. A step that returns false has
// set errno; the caller words the error. One thread; every step blocks on the disk.
class FileReplacement {
 public:
  // The file is written to `path` + `suffix`. kUniqueSuffix makes a name of its own, so that two
  // processes may replace one file at a time; any other suffix is one writer's, and what a writer
  // that died left there is overwritten.
  static constexpr const char* kUniqueSuffix = ".XXXXXX";
  FileReplacement(std::string path, const std::string& suffix);
  // Removes what was written unless it has been placed.
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  // A unique file has exactly this mode, any other one loses the bits of the umask. `links`: what
  // happens to a symbolic link in the file's place.
  enum class Links { kRefuse, kFollow };
  [[nodiscard]] bool Create(mode_t mode, Links links = Links::kRefuse);
  // All of the bytes.
  [[nodiscard]] bool Write(std::span<const std::byte> bytes);
  [[nodiscard]] bool Sync();
  // Renames.
  [[nodiscard]] bool Place();
  // Makes the rename durable: SyncFolder of folder().
  [[nodiscard]] bool SyncFolder() const;

  FileDescriptor& descriptor() { return file_; }
  const std::string& path() const { return path_; }
  const std::string& part_path() const { return part_path_; }
  // Of `path`; "." when that names none.
  std::string folder() const;

 private:
  const std::string path_;
  std::string part_path_;
  const bool unique_;
  bool placed_ = false;
  FileDescriptor file_;
};

// Appends what is left to read of an open file. False with errno set when it cannot be read.
[[nodiscard]] bool ReadRest(int fd, std::string& text);

// Takes the exclusive flock of an open file unless another process holds it for longer than a probe
// does: tries for 50 ms. False with errno set, EWOULDBLOCK where another holds it.
[[nodiscard]] bool TryLockExclusive(int fd);

// Makes durable which entries a folder has. False with errno set when it cannot. Blocks on the
// disk.
[[nodiscard]] bool SyncFolder(const std::string& folder);

// Replaces `path` by a file of mode 0644 that holds `text`, synced, as is the folder. Throws
// Error(kTryAgain) naming path and reason. One writer of `path` at a time; what one that died left
// beside it, the next one overwrites.
void WriteAtomically(const std::string& path, std::string_view text);

}  // namespace tetrion
