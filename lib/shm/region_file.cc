#include "lib/shm/region_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "lib/core/available_memory.h"

namespace tetrion {
namespace {

constexpr const char* kOnTmpfs = "choose a --shm-dir on a tmpfs";

// Returns errno's value.
int Allocate(int fd, std::uint64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return error;
}

bool OnTmpfs(int fd) {
  struct statfs info = {};
  return fstatfs(fd, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// Bytes that are free in the file system of `fd`; nothing where that has no limit or is not known.
std::optional<std::uint64_t> FreeSpace(int fd) {
  struct statvfs space = {};
  if (fstatvfs(fd, &space) != 0 || space.f_blocks == 0) return std::nullopt;
  return std::uint64_t{geteuid() == 0 ? space.f_bfree : space.f_bavail} * space.f_frsize;
}

bool IsShort(const std::optional<AvailableMemory>& available, std::uint64_t bytes) {
  return available && available->bytes < bytes;
}

[[noreturn]] void RefuseMemory(const std::string& name, std::uint64_t bytes,
                               const std::optional<AvailableMemory>& available, int error) {
  const bool grouped = available && !available->group.empty();
  throw ErrnoError(
      ExitCode::kTryAgain,
      "cannot get the " + name + ": " + std::to_string(bytes) + " bytes needed, " +
          (available ? std::to_string(available->bytes) : "unknown") + " bytes available" +
          (grouped ? " below the limit of " + std::to_string(available->limit_bytes) +
                         " bytes of the control group " + available->group
                   : ""),
      error,
      std::string(grouped ? "raise that limit (docker: --memory, Kubernetes: resources.limits)"
                          : "free memory") +
          ", or lower --workers, --lanes or --ring-rows");
}

}  // namespace

Error ErrnoError(ExitCode code, const std::string& what, int error, const std::string& advice) {
  return Error(code, what + ": " + std::strerror(error) + "; " + advice);
}

FileDescriptor OpenNoFollow(const std::string& path, int flags) {
  return FileDescriptor(open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
}

bool LockedByOther(int fd) {
  // A lock that cannot be asked for, as where the kernel has no room for it, is no dead owner.
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) return true;
  flock(fd, LOCK_UN);
  return false;
}

bool TryOwn(int fd, const std::string& path) {
  if (TryLockExclusive(fd)) return true;
  if (errno == EWOULDBLOCK) return false;
  throw ErrnoError(ExitCode::kUsage, "cannot lock " + path, errno, kOnTmpfs);
}

void AllocateFile(int fd, const std::string& path, std::uint64_t bytes, const std::string& root) {
  if (OnTmpfs(fd)) {
    const std::optional<AvailableMemory> available = FindAvailableMemory(root);
    if (IsShort(available, bytes)) RefuseMemory("shared region " + path, bytes, available, ENOMEM);
  }
  // Asked before: an attempt fills the file system, and others write to it.
  const std::optional<std::uint64_t> free = FreeSpace(fd);
  const int error = free && *free < bytes ? ENOSPC : Allocate(fd, bytes);
  if (error == 0) return;
  if (error != ENOSPC) {
    throw ErrnoError(ExitCode::kUsage,
                     "cannot allocate " + std::to_string(bytes) + " bytes for " + path, error,
                     kOnTmpfs);
  }
  throw Error(
      ExitCode::kTryAgain,
      "no room for the shared region " + path + ": " + std::to_string(bytes) + " bytes needed, " +
          (free ? std::to_string(*free) : "unknown") +
          " bytes free; enlarge the file system behind --shm-dir (in docker-compose.yml the "
          "volume's driver_opts: o: size=...), remove stale regions (./tetrion doctor), or "
          "lower --workers, --lanes or --ring-rows");
}

void AllocateMemory(int fd, const std::string& name, std::uint64_t bytes, const std::string& root) {
  const std::optional<AvailableMemory> available = FindAvailableMemory(root);
  const int error = IsShort(available, bytes) ? ENOMEM : Allocate(fd, bytes);
  if (error != 0) RefuseMemory(name, bytes, available, error);
}

}  // namespace tetrion
