#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {

// File descriptors, locks and allocation for the sources of lib/shm; not included elsewhere.

// Owns a file descriptor.
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

// Error whose text is `what` with errno's meaning and `advice`.
Error ErrnoError(ExitCode code, const std::string& what, int error, const std::string& advice);

// Opens without following a link and without blocking on a special file; an invalid descriptor with
// errno set on failure.
FileDescriptor OpenNoFollow(const std::string& path, int flags);

// Takes the exclusive flock unless another process holds it for longer than a probe does (tries for
// 50 ms).
bool TryLockExclusive(int fd);
// Whether a process holds the exclusive flock of a file that this descriptor does not lock itself.
// Takes the shared lock for a moment; never blocks.
bool LockedByOther(int fd);

// Allocates every byte of a new file, so that no later touch can fail. Throws Error(kTryAgain)
// naming the bytes needed, the bytes free and the setting that provides more.
void AllocateFile(int fd, const std::string& path, std::uint64_t bytes);

}  // namespace tetrion
