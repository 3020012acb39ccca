#include "lib/core/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "lib/core/clock.h"

namespace tetrion {
namespace {

[[noreturn]] void WriteFailed(const std::string& path) {
  throw Error(ExitCode::kTryAgain, "cannot write " + path + ": " + std::strerror(errno) +
                                       "; check free space and permissions");
}

}  // namespace

bool IsSetUpWrong(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM ||
         error == EROFS || error == ELOOP || error == ENAMETOOLONG || error == EOPNOTSUPP ||
         error == EISDIR || error == EEXIST || error == ENXIO;
}

bool IsWantOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ||
         error == ENOSPC;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

FileReplacement::FileReplacement(std::string path, const std::string& suffix)
    : path_(std::move(path)), part_path_(path_ + suffix), unique_(suffix == kUniqueSuffix) {}

FileReplacement::~FileReplacement() {
  // A unique name that was never made is another file's, if any.
  if (!placed_ && (!unique_ || file_.valid())) unlink(part_path_.c_str());
}

bool FileReplacement::Create(mode_t mode, Links links) {
  if (unique_) {
    file_ = FileDescriptor(mkostemp(part_path_.data(), O_CLOEXEC));
    return file_.valid() && fchmod(file_.get(), mode) == 0;
  }
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int no_link = links == Links::kRefuse ? O_NOFOLLOW : 0;
  file_ = FileDescriptor(open(part_path_.c_str(), flags | no_link, mode));
  return file_.valid();
}

bool FileReplacement::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

bool FileReplacement::Sync() {
  return fsync(file_.get()) == 0;
}

bool FileReplacement::Place() {
  placed_ = std::rename(part_path_.c_str(), path_.c_str()) == 0;
  return placed_;
}

bool FileReplacement::SyncFolder() const {
  return tetrion::SyncFolder(folder());
}

std::string FileReplacement::folder() const {
  const std::size_t slash = path_.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path_.substr(0, slash);
}

bool ReadRest(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t bytes = read(fd, buffer.data(), buffer.size());
    if (bytes == 0) return true;
    if (bytes < 0 && errno != EINTR) return false;
    if (bytes > 0) text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

bool TryLockExclusive(int fd) {
  constexpr int kTries = 50;  // a probe holds the shared lock for microseconds
  for (int i = 0; i < kTries; ++i) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    const timespec pause = {.tv_sec = 0, .tv_nsec = kNanosPerMilli};
    nanosleep(&pause, nullptr);
  }
  errno = EWOULDBLOCK;
  return false;
}

bool SyncFolder(const std::string& folder) {
  const FileDescriptor handle(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return handle.valid() && fsync(handle.get()) == 0;
}

void WriteAtomically(const std::string& path, std::string_view text) {
  FileReplacement file(path, ".part");
  if (!file.Create(0644) || fchmod(file.descriptor().get(), 0644) != 0 ||
      !file.Write(std::as_bytes(std::span(text))) || !file.Sync() || !file.Place()) {
    WriteFailed(path);
  }
  if (!file.SyncFolder()) WriteFailed(file.folder());
}

}  // namespace tetrion
