#include "services/learner/run_home.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lib/core/error.h"
#include "lib/core/file.h"

namespace tetrion::learner {
namespace {

namespace fs = std::filesystem;

std::string PathOf(const LearnerOptions& options, const wire::Registered& registered) {
  if (!options.member.run_folder.empty()) return options.member.run_folder;
  if (!options.runs_dir.empty()) return options.runs_dir + "/" + registered.run;
  return registered.run_folder;
}

[[noreturn]] void Refuse(const std::string& what, int error) {
  if (!IsSetUpWrong(error)) {
    throw Error(ExitCode::kTryAgain, what + ": " + std::strerror(error));
  }
  throw Error(ExitCode::kConfig,
              what + ": " + std::strerror(error) +
                  ": the learner keeps its checkpoints there; mount the folder of the "
                  "coordinator's runs and say with --runs-dir where it is");
}

// Makes a file without a name, since modes alone do not say whether one can be made: on a file
// system mounted read-only, or by root. Where such files are unknown, the modes must do.
void CheckWritable(const std::string& folder) {
  const FileDescriptor file(open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (file.valid()) return;
  const bool unknown = errno == EOPNOTSUPP || errno == EISDIR;
  if (unknown && access(folder.c_str(), W_OK | X_OK) == 0) return;
  Refuse("cannot write to " + folder, errno);
}

// Also where the folder's file system does not answer.
bool IsFolder(const std::string& path, int& reason) {
  std::error_code error;
  const bool is = fs::is_directory(path, error);
  reason = error ? error.value() : ENOTDIR;
  return is;
}

}  // namespace

RunFolder RunHomeOf(const LearnerOptions& options, const wire::Registered& registered) {
  RunFolder home = RunFolder::At(PathOf(options, registered));
  int reason = 0;
  if (!IsFolder(home.path(), reason)) {
    Refuse("the folder of run " + registered.run + " is not here, " + home.path(), reason);
  }
  std::error_code ignored;
  fs::create_directory(home.checkpoints(), ignored);
  CheckWritable(IsFolder(home.checkpoints(), reason) ? home.checkpoints() : home.path());
  return home;
}

}  // namespace tetrion::learner
