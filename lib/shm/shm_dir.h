#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/file.h"

namespace tetrion {

// The folder of the shared regions. Every region file is named after its run, so that any process
// can tell from the name and the owner's flock alone what is alive and what is left over.

// "/dev/shm/tetrion-<uid>".
std::string DefaultShmDir();
// Creates the folder (mode 0700) unless it exists. Throws Error(kUsage) when it is no folder,
// belongs to another user, is open to others, or cannot be made (kTryAgain: for now).
void EnsureShmDir(const std::string& dir);

// "<run_id as 16 hex digits>.ring.<pid>-<random as 8 hex digits>.<worker>".
std::string RingName(std::uint64_t run_id, std::int32_t pid, std::uint32_t random,
                     std::uint32_t worker);
// The same with ".stream.": a ring whose rows are decided by the learner.
std::string StreamName(std::uint64_t run_id, std::int32_t pid, std::uint32_t random,
                       std::uint32_t worker);
// Whether a path's file name is one that RingName or StreamName made, as opposed to the learner's.
bool IsRingPath(const std::string& path);
bool IsStreamPath(const std::string& path);
// "<run_id as 16 hex digits>.learner".
std::string LearnerName(std::uint64_t run_id);

// Creating, adopting and removing regions happen one at a time: an exclusive flock of <dir>/.lock.
// The constructor blocks up to 30 s, then throws Error(kTryAgain), as for a want of files or room.
class ShmDirLock {
 public:
  explicit ShmDirLock(const std::string& dir);
  // The same without blocking: null while another process holds the lock, or the file cannot be
  // opened.
  static std::unique_ptr<ShmDirLock> Try(const std::string& dir);
  ~ShmDirLock();
  ShmDirLock(const ShmDirLock&) = delete;
  ShmDirLock& operator=(const ShmDirLock&) = delete;

 private:
  explicit ShmDirLock(int fd) : fd_(fd) {}

  int fd_;
};

struct RegionFile {
  std::string path;
  std::uint64_t run_id = 0;
  std::uint64_t bytes = 0;
  bool locked = false;  // an owner lives
};

// Every region file of `dir`, sorted by path; files with other names are left out. Asks the kernel
// for each lock without blocking; owners that come or go meanwhile may show either way unless the
// caller holds the ShmDirLock. A folder that does not exist holds none.
std::vector<RegionFile> ListRegions(const std::string& dir);

// Whether an owner holds a region, and which, as RegionOwnerId; 0 while its header is not written.
struct RegionHold {
  bool held = false;
  std::uint64_t owner = 0;
  bool operator==(const RegionHold&) const = default;
};
// Of the region at `path`: not held where there is no such file; nothing where the file cannot be
// opened. Asks the kernel without blocking.
std::optional<RegionHold> LookAtRegion(const std::string& path);

// Removes the files of every run of which no file at all is locked, but not the rings of `run_id`:
// its learner takes what they hold before it removes them. Returns the number removed. Takes the
// ShmDirLock. Thread-safe, any process of the user.
int RemoveStale(const std::string& dir, std::uint64_t run_id);

// Keeps the files of a run whose processes are gone for its next learner, which takes what the
// rings hold: while this lives it locks one of them, so that RemoveStale, of any process, spares
// the run. Holds nothing where the run has no ring, or where living processes lock all that it has.
// Takes the ShmDirLock. Throws Error(kUsage) where the file system has no locks.
class KeptRings {
 public:
  KeptRings(const std::string& dir, std::uint64_t run_id);

 private:
  FileDescriptor ring_;
};

// Never blocks: does nothing while another process holds the ShmDirLock; the caller asks again.
// Removes the ring of `run_id` with `path`'s file name unless a process locks it. False while it is
// there: its owner lives, or the folder is locked.
bool TryRemoveDeadRing(const std::string& dir, std::uint64_t run_id, const std::string& path);
// The same with the region of the run's learner, unless a process locks any of the run's: a worker
// that lives keeps its mapping, and goes on with the next learner. True where there is no file.
bool TryRemoveDeadLearner(const std::string& dir, std::uint64_t run_id);

}  // namespace tetrion
