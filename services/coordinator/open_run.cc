#include "services/coordinator/open_run.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"

namespace tetrion::coordinator {
namespace {

FileDescriptor LockFolder(const RunFolder& folder) {
  FileDescriptor file(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool gone = !file.valid() && errno == ENOENT;
  const bool held = !gone && (!file.valid() || !TryLockExclusive(file.get()));
  if (held && errno != EWOULDBLOCK) {
    throw Error(ExitCode::kTryAgain, "cannot lock run folder " + folder.path() + ": " +
                                         std::strerror(errno) +
                                         "; see who owns it (ls -ld) and what the disk allows");
  }
  if (held) {
    throw Error(ExitCode::kUsage, "run folder " + folder.path() +
                                      " is in use by another coordinator: stop that one first, or "
                                      "start another run with --run NAME");
  }
  // A coordinator whose new run could not start removes the folder under its lock.
  struct stat locked = {}, there = {};
  const bool same = fstat(file.get(), &locked) == 0 && stat(folder.path().c_str(), &there) == 0 &&
                    locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
  if (same) return file;
  throw Error(ExitCode::kTryAgain, "run folder " + folder.path() +
                                       " was just removed by the coordinator that had made it: "
                                       "start again");
}

// What a new run begins with, made sure of while nothing is made.
struct Beginning {
  RunConfig config;
  std::optional<Checkpoint> initial;
};

Beginning BeginningOf(const CoordinatorOptions& options) {
  Beginning beginning = {.config = MakeRunConfig(options.given), .initial = {}};
  static_cast<void>(EnvSpecOf(beginning.config));  // refuses an unknown view
  if (!options.init_from.empty()) {
    beginning.initial = LoadInitial(options.runs_dir, options.init_from, beginning.config);
  }
  return beginning;
}

OpenedRun Begin(Beginning beginning, RunFolder folder, FileDescriptor lock) {
  try {
    folder.MakeFolders();
    if (const auto& initial = beginning.initial) {
      CheckpointStore(folder.initial(), 1).Save(initial->state, initial->info);
      folder.RecordChanges({{"init_from", "", initial->path}}, /*update=*/0);
      log::info("begins with the weights of {} ({} updates)", initial->path, initial->info.updates);
    }
    folder.WriteConfig(beginning.config);
  } catch (const Error&) {
    std::filesystem::remove_all(folder.path());  // the same command can be given again
    throw;
  }
  return {.folder = std::move(folder),
          .lock = std::move(lock),
          .config = std::move(beginning.config),
          .is_new = true};
}

// The update from which a resumed run has its new settings: that of the newest checkpoint.
std::int64_t ResumedUpdate(const RunFolder& folder) {
  const auto checkpoints = CheckpointStore(folder.checkpoints(), 1).Manifest();
  return checkpoints.empty() ? 0 : checkpoints.back().info.updates;
}

bool HasTrained(const RunFolder& folder) {
  std::error_code error;
  std::filesystem::directory_iterator file(folder.checkpoints(), error), end;
  for (; !error && file != end; file.increment(error)) {
    if (file->path().extension() == ".safetensors") return true;
  }
  return false;
}

// A run that has trained has an account. Without it, as in a copy that lacks the file, tokens and
// steps would begin again at 0 under weights that do not. Store::Load looks into it.
void RefuseLostAccount(const RunFolder& folder) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(folder.store(), error);
  const bool is_lost = error == std::errc::no_such_file_or_directory || (!error && bytes == 0);
  if (!is_lost) return;
  throw Error(ExitCode::kConfig,
              "run " + folder.name() + " has checkpoints and no account: " + folder.store() +
                  " is missing or empty; restore it from a copy, or begin a new run with these "
                  "weights: --init-from " +
                  folder.name());
}

OpenedRun ResumedRun(const CoordinatorOptions& options, RunFolder folder, FileDescriptor lock) {
  const bool has_trained = HasTrained(folder);
  if (has_trained) RefuseLostAccount(folder);
  RunConfig config = folder.ReadConfig();
  std::vector<SettingChange> changes = ChangeOnResume(options.given, config);
  return {.folder = std::move(folder),
          .lock = std::move(lock),
          .config = std::move(config),
          .changes = std::move(changes),
          .has_trained = has_trained};
}

// Whether `path` holds nothing but regular files named *.log, as `up` writes them.
bool HoldsLogsAtMost(const std::string& path) {
  const std::filesystem::directory_iterator files(path);
  return std::all_of(begin(files), end(files), [](const auto& file) {
    return file.is_regular_file() && file.path().extension() == ".log";
  });
}

// A death in Begin leaves what it had made so far: folders, the initial weights, files whole or in
// part. Nothing was ever played, so they are removed. Anything else is not ours to begin in.
void ClearBeginning(const RunFolder& folder) {
  std::vector<std::string> begun;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string path = entry.path();
    const bool made = path == folder.checkpoints() || path == folder.logs();
    if (made && entry.is_directory() &&
        (path == folder.logs() ? HoldsLogsAtMost(path) : std::filesystem::is_empty(path))) {
      continue;
    }
    if (path == folder.initial() || path.starts_with(folder.changes_jsonl()) ||
        path.starts_with(folder.config_toml())) {
      begun.push_back(path);
      continue;
    }
    throw Error(ExitCode::kUsage, folder.path() +
                                      " exists and is no run: config.toml is missing, "
                                      "and there is " +
                                      entry.path().filename().string() +
                                      "; move it away, or start another run with --run NAME");
  }
  for (const std::string& path : begun) std::filesystem::remove_all(path);
}

OpenedRun NewRun(const CoordinatorOptions& options) {
  Beginning beginning = BeginningOf(options);
  const std::string name =
      options.run.empty() ? DefaultRunName(beginning.config.env, std::time(nullptr)) : options.run;
  CheckRunName(name);  // before a path is made of it
  const RunFolder wanted = RunFolder::At(options.runs_dir + "/" + name);
  std::error_code missing;
  const bool half_begun =
      std::filesystem::is_directory(wanted.path(), missing) && !wanted.HasConfig();
  RunFolder folder = half_begun ? RunFolder::Ensure(options.runs_dir, name)
                                : RunFolder::Create(options.runs_dir, name);
  FileDescriptor lock = LockFolder(folder);
  if (folder.HasConfig()) {
    throw Error(ExitCode::kUsage, "run " + name +
                                      " was begun by another coordinator meanwhile; to "
                                      "go on with it: ./tetrion up --resume " +
                                      RunArguments(options.runs_dir, name));
  }
  ClearBeginning(folder);
  return Begin(std::move(beginning), std::move(folder), std::move(lock));
}

// Two coordinators that are started together agree on which of them begins the run: the one that
// has the lock. The first look, without it, keeps an impossible beginning from making a folder.
OpenedRun BeginOrResume(const CoordinatorOptions& options) {
  CheckRunName(options.run);
  const RunFolder wanted = RunFolder::At(options.runs_dir + "/" + options.run);
  std::optional<Beginning> beginning;
  if (!wanted.HasConfig()) beginning = BeginningOf(options);
  RunFolder folder = RunFolder::Ensure(options.runs_dir, options.run);
  FileDescriptor lock = LockFolder(folder);
  if (folder.HasConfig()) {
    return ResumedRun(options, std::move(folder), std::move(lock));
  }
  ClearBeginning(folder);
  if (!beginning) beginning = BeginningOf(options);
  return Begin(std::move(*beginning), std::move(folder), std::move(lock));
}

}  // namespace

OpenedRun OpenRun(const CoordinatorOptions& options) {
  if (options.or_resume) return BeginOrResume(options);
  if (options.resume.empty()) return NewRun(options);
  RunFolder folder = RunFolder::Open(options.runs_dir, options.resume);
  FileDescriptor lock = LockFolder(folder);
  return ResumedRun(options, std::move(folder), std::move(lock));
}

void NoteResumed(const OpenedRun& run) {
  if (run.is_new) return;
  if (run.changes.empty()) {
    std::error_code ignored;  // then an older run counts as the latest
    std::filesystem::last_write_time(run.folder.config_toml(),
                                     std::filesystem::file_time_type::clock::now(), ignored);
    return;
  }
  const std::int64_t update = ResumedUpdate(run.folder);
  run.folder.RecordChanges(run.changes, update);
  run.folder.WriteConfig(run.config);
  for (const SettingChange& change : run.changes) {
    log::info("{} {} -> {} at update {}", change.key, change.before, change.after, update);
  }
}

}  // namespace tetrion::coordinator
