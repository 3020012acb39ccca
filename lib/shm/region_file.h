#pragma once

#include <cstdint>
#include <string>

#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion {

// Locks and allocation for the sources of lib/shm; not included elsewhere.

// Error whose text is `what` with errno's meaning and `advice`.
Error ErrnoError(ExitCode code, const std::string& what, int error, const std::string& advice);

// Opens without following a link and without blocking on a special file; an invalid descriptor with
// errno set on failure.
FileDescriptor OpenNoFollow(const std::string& path, int flags);

// Whether a process holds the exclusive flock of a file that this descriptor does not lock itself.
// Takes the shared lock for a moment; never blocks.
bool LockedByOther(int fd);

// Takes the exclusive flock of an open file as TryLockExclusive does; false where another process
// holds it. Throws Error(kUsage) naming `path` where the file system has no locks.
[[nodiscard]] bool TryOwn(int fd, const std::string& path);

// Allocates every byte of a new file, so that no later touch can fail. Throws Error(kTryAgain)
// naming the bytes needed, the bytes free and the setting that provides more. On a tmpfs, whose
// pages are memory, the call asks first what is available, as AllocateMemory does. `root` as there.
void AllocateFile(int fd, const std::string& path, std::uint64_t bytes,
                  const std::string& root = "");
// The same for memory without a file. The kernel's only limit there is the out-of-memory killer, so
// the call asks first what is available, of the machine and below the limits of control groups; the
// error names the limit. `root` as for FindAvailableMemory.
void AllocateMemory(int fd, const std::string& name, std::uint64_t bytes,
                    const std::string& root = "");

}  // namespace tetrion
