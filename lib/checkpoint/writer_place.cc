#include "lib/checkpoint/writer_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lib/core/clock.h"
#include "lib/core/log.h"
#include "lib/core/random.h"

namespace tetrion {
namespace {

std::string NewToken() {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx\n", static_cast<unsigned long long>(RandomBits()));
  return text;
}

bool HasNoLocks(int error) {
  return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS;
}

// The file could not be made: no earlier taker has left one. On a disk that is read-only no turn
// follows.
bool IsNotThere(int error) {
  return error == ENOENT || error == ENOSPC || error == EDQUOT || error == EROFS;
}

}  // namespace

WriterPlace::WriterPlace(const std::string& folder, std::int64_t wait_ms)
    : path_(folder + "/" + kFileName), token_(NewToken()), wait_ms_(wait_ms) {}

// The open file, locked; an invalid descriptor with errno set when it cannot be opened.
FileDescriptor WriterPlace::Lock() const {
  FileDescriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return file;
  const Deadline deadline = Deadline::AfterMs(wait_ms_);
  while (!TryLockExclusive(file.get())) {
    if (HasNoLocks(errno)) break;
    if (errno != EWOULDBLOCK && errno != EINTR) return FileDescriptor();
    if (!deadline.Passed()) continue;
    throw Error(ExitCode::kTryAgain, "another process writes beside " + path_ +
                                         " and does not end: fuser " + path_ +
                                         " on its host names it");
  }
  return file;
}

// Throws where the file cannot be read.
void WriterPlace::ReadHolder(const FileDescriptor& file) {
  holder_.assign(token_.size(), '\0');
  const ssize_t done = pread(file.get(), holder_.data(), holder_.size(), 0);
  if (done < 0) {
    throw Error(ExitCode::kTryAgain, "cannot read " + path_ + ": " + std::strerror(errno));
  }
  holder_.resize(static_cast<std::size_t>(done));
}

// Over what is there, which has the same length: a full disk has room for that. Synced, since a
// disk may refuse only then.
bool WriterPlace::WriteToken(const FileDescriptor& file) {
  const ssize_t done = pwrite(file.get(), token_.data(), token_.size(), 0);
  taken_ = done == static_cast<ssize_t>(token_.size()) && fdatasync(file.get()) == 0;
  return taken_;
}

bool WriterPlace::Take() {
  wanted_ = true;
  taken_ = false;
  holder_.clear();
  const FileDescriptor file = Lock();
  if (!file.valid()) {
    if (IsNotThere(errno)) return false;
    throw Error(CodeOfFault(errno, ExitCode::kConfig),
                "cannot tell who writes beside " + path_ + ": " + std::strerror(errno));
  }
  ReadHolder(file);
  return WriteToken(file);
}

FileDescriptor WriterPlace::BeginTurn() {
  if (!wanted_) return FileDescriptor();
  const auto refuse = [this] {
    throw Error(ExitCode::kTryAgain, "cannot write " + path_ + ": " + std::strerror(errno));
  };
  FileDescriptor file = Lock();
  if (!file.valid()) refuse();
  const std::string expected = taken_ ? token_ : holder_;
  ReadHolder(file);
  // Removed or emptied: it names no other taker.
  const bool is_lost = holder_.empty();
  // Its own token may be there although the disk refused it: written, but not synced.
  if (!is_lost && holder_ != expected && holder_ != token_) {
    throw PlaceTaken(ExitCode::kTryAgain,
                     "another process writes beside " + path_ +
                         " since this one was taken for dead: what this one has made since its "
                         "last turn is given up");
  }
  if (is_lost && taken_) log::warn("{} was removed or emptied: taken again", path_);
  if ((is_lost || !taken_) && !WriteToken(file)) refuse();
  return file;
}

}  // namespace tetrion
