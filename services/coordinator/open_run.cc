#include "services/coordinator/open_run.h"

#include <fcntl.h>
#include <sys/file.h>

#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/setup/init_from.h"
#include "lib/setup/run_setup.h"

namespace tetrion::coordinator {
namespace {

OpenedRun NewRun(const CoordinatorOptions& options) {
  RunConfig config = MakeRunConfig(options.given);
  static_cast<void>(EnvSpecOf(config));  // refuses an unknown view while nothing is made
  std::optional<Checkpoint> initial;
  if (!options.init_from.empty()) {
    initial = LoadInitial(options.runs_dir, options.init_from, config);
  }
  const std::string name =
      options.run.empty() ? DefaultRunName(config.env, std::time(nullptr)) : options.run;
  RunFolder folder = RunFolder::Create(options.runs_dir, name);
  try {
    if (initial) {
      CheckpointStore(folder.initial(), 1).Save(initial->state, initial->info);
      folder.RecordChanges({{"init_from", "", initial->path}}, /*update=*/0);
      log::info("begins with the weights of {} ({} updates)", initial->path, initial->info.updates);
    }
    folder.WriteConfig(config);
  } catch (const Error&) {
    std::filesystem::remove_all(folder.path());  // the same command can be given again
    throw;
  }
  return {.folder = std::move(folder), .config = std::move(config), .is_new = true};
}

// The update from which a resumed run has its new settings: that of the newest checkpoint.
std::int64_t ResumedUpdate(const RunFolder& folder) {
  const auto checkpoints = CheckpointStore(folder.checkpoints(), 1).Manifest();
  return checkpoints.empty() ? 0 : checkpoints.back().info.updates;
}

OpenedRun ResumedRun(const CoordinatorOptions& options) {
  RunFolder folder = RunFolder::Open(options.runs_dir, options.resume);
  RunConfig config = folder.ReadConfig();
  const std::vector<SettingChange> changes = ChangeOnResume(options.given, config);
  if (!changes.empty()) {
    const std::int64_t update = ResumedUpdate(folder);
    folder.RecordChanges(changes, update);
    folder.WriteConfig(config);
    for (const SettingChange& change : changes) {
      log::info("{} {} -> {} at update {}", change.key, change.before, change.after, update);
    }
  }
  return {.folder = std::move(folder), .config = std::move(config)};
}

}  // namespace

OpenedRun OpenRun(const CoordinatorOptions& options) {
  return options.resume.empty() ? NewRun(options) : ResumedRun(options);
}

FileDescriptor LockFolder(const RunFolder& folder) {
  FileDescriptor file(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.valid() && flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  throw Error(ExitCode::kUsage, "run folder " + folder.path() +
                                    " is in use by another coordinator: stop that one first, or "
                                    "start another run with --run NAME");
}

}  // namespace tetrion::coordinator
