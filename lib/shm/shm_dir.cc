#include "lib/shm/shm_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/file.h"
#include "lib/shm/region_file.h"
#include "lib/shm/region_header.h"

namespace tetrion {
namespace {

constexpr std::int64_t kDirLockTimeoutMs = 30'000;  // a creation allocates gigabytes at worst
constexpr std::size_t kRunIdDigits = 16;

std::string RunPrefix(std::uint64_t run_id) {
  char text[kRunIdDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(run_id));
  return text;
}

// The one list of what region files are called: "<run_id>." and one of these, the learner's
// exactly, the others followed by the worker.
constexpr const char* kRingPart = "ring.";
constexpr const char* kStreamPart = "stream.";
constexpr const char* kLearnerPart = "learner";

// What a file's name says; nullopt for files that are no regions.
struct RegionName {
  std::uint64_t run_id = 0;
  RegionKind kind = RegionKind::kRing;
};

std::optional<RegionName> ParseName(const std::string& name) {
  if (name.size() < kRunIdDigits + 2 || name[kRunIdDigits] != '.') return std::nullopt;
  const std::string digits = name.substr(0, kRunIdDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  const std::uint64_t run_id = std::stoull(digits, nullptr, 16);
  const std::string rest = name.substr(kRunIdDigits + 1);
  if (rest == kLearnerPart) return RegionName{run_id, RegionKind::kLearner};
  if (rest.rfind(kRingPart, 0) == 0) return RegionName{run_id, RegionKind::kRing};
  if (rest.rfind(kStreamPart, 0) == 0) return RegionName{run_id, RegionKind::kStream};
  return std::nullopt;
}

std::string NameOf(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Removes those of `files` that no process locks and `unwanted` picks; the caller holds the
// ShmDirLock, under which no file gets a new owner.
template <typename Predicate>
int RemoveUnlocked(const std::vector<RegionFile>& files, Predicate unwanted) {
  int removed = 0;
  for (const RegionFile& file : files) {
    if (!file.locked && unwanted(file) && unlink(file.path.c_str()) == 0) ++removed;
  }
  return removed;
}

FileDescriptor OpenDirLock(const std::string& dir) {
  return OpenNoFollow(dir + "/.lock", O_RDWR | O_CREAT);
}

std::string WorkerSuffix(std::int32_t pid, std::uint32_t random, std::uint32_t worker) {
  char text[64];
  std::snprintf(text, sizeof text, "%d-%08x.%u", static_cast<int>(pid), random, worker);
  return text;
}

}  // namespace

std::string DefaultShmDir() {
  return "/dev/shm/tetrion-" + std::to_string(geteuid());
}

void EnsureShmDir(const std::string& dir) {
  const std::string advice =
      "choose another --shm-dir or make this one a folder of yours, mode 0700";
  if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
    throw ErrnoError(CodeOfFault(errno, ExitCode::kUsage),
                     "cannot make the shared-memory folder " + dir, errno, advice);
  }
  struct stat info = {};
  if (lstat(dir.c_str(), &info) != 0) {
    throw ErrnoError(ExitCode::kUsage, "cannot look at " + dir, errno, advice);
  }
  if (!S_ISDIR(info.st_mode)) throw Error(ExitCode::kUsage, dir + " is no folder; " + advice);
  if (info.st_uid != geteuid()) {
    throw Error(ExitCode::kUsage, dir + " belongs to uid " + std::to_string(info.st_uid) +
                                      ", not to " + std::to_string(geteuid()) + "; " + advice);
  }
  if ((info.st_mode & 077) != 0) {
    throw Error(ExitCode::kUsage, dir + " is open to other users; " + advice);
  }
}

std::string RingName(std::uint64_t run_id, std::int32_t pid, std::uint32_t random,
                     std::uint32_t worker) {
  return RunPrefix(run_id) + "." + kRingPart + WorkerSuffix(pid, random, worker);
}

std::string StreamName(std::uint64_t run_id, std::int32_t pid, std::uint32_t random,
                       std::uint32_t worker) {
  return RunPrefix(run_id) + "." + kStreamPart + WorkerSuffix(pid, random, worker);
}

bool IsStreamPath(const std::string& path) {
  const std::optional<RegionName> name = ParseName(NameOf(path));
  return name && name->kind == RegionKind::kStream;
}

bool IsRingPath(const std::string& path) {
  const std::optional<RegionName> name = ParseName(NameOf(path));
  return name && name->kind != RegionKind::kLearner;
}

std::string LearnerName(std::uint64_t run_id) {
  return RunPrefix(run_id) + "." + kLearnerPart;
}

ShmDirLock::ShmDirLock(const std::string& dir) {
  const std::string path = dir + "/.lock";
  FileDescriptor fd = OpenDirLock(dir);
  if (!fd.valid()) {
    throw ErrnoError(CodeOfFault(errno, ExitCode::kUsage), "cannot open " + path, errno,
                     "check that the --shm-dir exists and is yours");
  }
  const Deadline deadline = Deadline::AfterMs(kDirLockTimeoutMs);
  while (!TryOwn(fd.get(), path)) {
    if (deadline.Passed()) {
      throw Error(ExitCode::kTryAgain, "another process has held " + path +
                                           " for 30 s; see which "
                                           "with `fuser` and end it");
    }
  }
  fd_ = fd.Release();
}

std::unique_ptr<ShmDirLock> ShmDirLock::Try(const std::string& dir) {
  FileDescriptor fd = OpenDirLock(dir);
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return nullptr;
  return std::unique_ptr<ShmDirLock>(new ShmDirLock(fd.Release()));
}

ShmDirLock::~ShmDirLock() {
  close(fd_);
}

std::vector<RegionFile> ListRegions(const std::string& dir) {
  std::vector<RegionFile> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(dir.c_str()), closedir);
  if (!stream) return files;
  while (const dirent* entry = readdir(stream.get())) {
    const std::optional<RegionName> name = ParseName(entry->d_name);
    if (!name) continue;
    RegionFile file = {.path = dir + "/" + entry->d_name, .run_id = name->run_id};
    const FileDescriptor fd = OpenNoFollow(file.path, O_RDONLY);
    struct stat info = {};
    if (!fd.valid() || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    file.bytes = static_cast<std::uint64_t>(info.st_size);
    file.locked = LockedByOther(fd.get());
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const RegionFile& a, const RegionFile& b) { return a.path < b.path; });
  return files;
}

std::optional<RegionHold> LookAtRegion(const std::string& path) {
  const FileDescriptor fd = OpenNoFollow(path, O_RDONLY);
  if (!fd.valid()) return errno == ENOENT ? std::optional(RegionHold()) : std::nullopt;
  RegionHold hold = {.held = LockedByOther(fd.get())};
  RegionHeader header = {};
  const ssize_t bytes = pread(fd.get(), static_cast<void*>(&header), sizeof header, 0);
  if (bytes == sizeof header && header.owner_pid.load(std::memory_order_relaxed) != 0) {
    hold.owner = RegionOwnerId(header);
  }
  return hold;
}

int RemoveStale(const std::string& dir, std::uint64_t run_id) {
  const ShmDirLock lock(dir);
  const std::vector<RegionFile> files = ListRegions(dir);
  std::set<std::uint64_t> alive;
  for (const RegionFile& file : files) {
    if (file.locked) alive.insert(file.run_id);
  }
  return RemoveUnlocked(files, [&](const RegionFile& file) {
    const bool holds_rows = file.run_id == run_id && IsRingPath(file.path);
    return !alive.contains(file.run_id) && !holds_rows;
  });
}

KeptRings::KeptRings(const std::string& dir, std::uint64_t run_id) {
  if (access(dir.c_str(), F_OK) != 0) return;
  const ShmDirLock lock(dir);
  for (const RegionFile& file : ListRegions(dir)) {
    if (file.run_id != run_id || !IsRingPath(file.path) || file.locked) continue;
    FileDescriptor ring = OpenNoFollow(file.path, O_RDONLY);
    if (!ring.valid() || !TryOwn(ring.get(), file.path)) continue;
    ring_ = std::move(ring);
    return;
  }
}

bool TryRemoveDeadRing(const std::string& dir, std::uint64_t run_id, const std::string& path) {
  const std::unique_ptr<ShmDirLock> lock = ShmDirLock::Try(dir);
  if (lock == nullptr) return false;
  RemoveUnlocked(ListRegions(dir), [&](const RegionFile& file) {
    return file.run_id == run_id && IsRingPath(file.path) && NameOf(file.path) == NameOf(path);
  });
  return access((dir + "/" + NameOf(path)).c_str(), F_OK) != 0;
}

bool TryRemoveDeadLearner(const std::string& dir, std::uint64_t run_id) {
  const std::string name = LearnerName(run_id), path = dir + "/" + name;
  if (access(path.c_str(), F_OK) != 0) return true;
  const std::unique_ptr<ShmDirLock> lock = ShmDirLock::Try(dir);
  if (lock == nullptr) return false;
  const std::vector<RegionFile> files = ListRegions(dir);
  const bool in_use = std::any_of(files.begin(), files.end(), [&](const RegionFile& file) {
    return file.run_id == run_id && file.locked;
  });
  if (in_use) return false;
  RemoveUnlocked(files, [&](const RegionFile& file) { return NameOf(file.path) == name; });
  return access(path.c_str(), F_OK) != 0;
}

}  // namespace tetrion
