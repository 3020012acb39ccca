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
#include <set>
#include <utility>

#include "lib/core/clock.h"
#include "lib/shm/region_file.h"

namespace tetrion {
namespace {

constexpr const char* kRingInfix = ".ring.";
constexpr const char* kStreamInfix = ".stream.";

constexpr std::int64_t kDirLockTimeoutMs = 30'000;  // a creation allocates gigabytes at worst
constexpr std::size_t kRunIdDigits = 16;

std::string RunPrefix(std::uint64_t run_id) {
  char text[kRunIdDigits + 1];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(run_id));
  return text;
}

// The run a file belongs to; false for files that are no regions.
bool ParseRunId(const std::string& name, std::uint64_t& run_id) {
  if (name.size() < kRunIdDigits + 2 || name[kRunIdDigits] != '.') return false;
  const std::string digits = name.substr(0, kRunIdDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  const std::string rest = name.substr(kRunIdDigits + 1);
  run_id = std::stoull(digits, nullptr, 16);
  return rest == "learner" || rest.rfind("ring.", 0) == 0;
}

// Removes those of `files` that belong to no run in `kept`; the caller holds the ShmDirLock.
int RemoveFiles(const std::vector<RegionFile>& files, const std::set<std::uint64_t>& kept) {
  int removed = 0;
  for (const RegionFile& file : files) {
    if (!kept.contains(file.run_id) && unlink(file.path.c_str()) == 0) ++removed;
  }
  return removed;
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
    throw ErrnoError(ExitCode::kUsage, "cannot make the shared-memory folder " + dir, errno,
                     advice);
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
  return RunPrefix(run_id) + kRingInfix + WorkerSuffix(pid, random, worker);
}

std::string StreamName(std::uint64_t run_id, std::int32_t pid, std::uint32_t random,
                       std::uint32_t worker) {
  return RunPrefix(run_id) + kStreamInfix + WorkerSuffix(pid, random, worker);
}

bool IsStreamPath(const std::string& path) {
  return path.find(kStreamInfix, path.find_last_of('/') + 1) != std::string::npos;
}

bool IsRingPath(const std::string& path) {
  return IsStreamPath(path) ||
         path.find(kRingInfix, path.find_last_of('/') + 1) != std::string::npos;
}

std::string LearnerName(std::uint64_t run_id) {
  return RunPrefix(run_id) + ".learner";
}

ShmDirLock::ShmDirLock(const std::string& dir) {
  const std::string path = dir + "/.lock";
  FileDescriptor fd = OpenNoFollow(path, O_RDWR | O_CREAT);
  if (!fd.valid()) {
    throw ErrnoError(ExitCode::kUsage, "cannot open " + path, errno,
                     "check that the --shm-dir exists and is yours");
  }
  const Deadline deadline = Deadline::AfterMs(kDirLockTimeoutMs);
  while (!TryLockExclusive(fd.get())) {
    if (deadline.Passed()) {
      throw Error(ExitCode::kTryAgain, "another process has held " + path +
                                           " for 30 s; see which "
                                           "with `fuser` and end it");
    }
  }
  fd_ = fd.Release();
}

ShmDirLock::~ShmDirLock() {
  close(fd_);
}

std::vector<RegionFile> ListRegions(const std::string& dir) {
  std::vector<RegionFile> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(dir.c_str()), closedir);
  if (!stream) return files;
  while (const dirent* entry = readdir(stream.get())) {
    RegionFile file = {.path = dir + "/" + entry->d_name};
    if (!ParseRunId(entry->d_name, file.run_id)) continue;
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

bool RegionIsFree(const std::string& path) {
  const FileDescriptor fd = OpenNoFollow(path, O_RDONLY);
  return fd.valid() && !LockedByOther(fd.get());
}

int RemoveStale(const std::string& dir, std::uint64_t run_id) {
  const ShmDirLock lock(dir);
  const std::vector<RegionFile> files = ListRegions(dir);
  std::set<std::uint64_t> kept = {run_id};
  for (const RegionFile& file : files) {
    if (file.locked) kept.insert(file.run_id);
  }
  return RemoveFiles(files, kept);
}

int ReapRun(const std::string& dir, std::uint64_t run_id) {
  const ShmDirLock lock(dir);
  std::vector<RegionFile> files = ListRegions(dir);
  std::erase_if(files,
                [run_id](const RegionFile& file) { return file.locked || file.run_id != run_id; });
  return RemoveFiles(files, {});
}

}  // namespace tetrion
