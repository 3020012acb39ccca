#include "lib/setup/tensor_library.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/no_tensor_library.h"
#include "lib/run/signals.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

// "auto" is what the view asks for.
std::string NetworkOf(const RunConfig& run) {
  return run.network == "auto" ? EnvSpecOf(run).obs.network : run.network;
}

}  // namespace

bool HasTensorLibrary() {
#if defined(TETRION_WITH_TORCH)
  return true;
#else
  return false;
#endif
}

bool NeedsTensorLibrary(const RunConfig& run) {
  return run.algo == "dreamer" || NetworkOf(run) == "conv";
}

void RequireTensorLibrary(const RunConfig& run, const std::string& program,
                          std::span<const char* const> arguments, bool present) {
  if (present || !NeedsTensorLibrary(run)) return;
  const std::string what = run.algo == "dreamer" ? "algo " + run.algo : "network " + NetworkOf(run);
  const char* const script = std::getenv("TETRION_SCRIPT");
  if (script == nullptr) throw Error(ExitCode::kUsage, NoTensorLibrary(what));
  log::info("{} needs the tensor library, which this build is without", what);
  const std::string verb = "with-tensor-library";
  std::vector<const char*> words = {script, verb.c_str(), program.c_str()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(nullptr);
  SignalWatcher::UnblockInChild();  // so that Ctrl-C ends a download
  execv(script, const_cast<char* const*>(words.data()));
  throw Error(ExitCode::kUsage, std::string("cannot start ") + script + ": " +
                                    std::strerror(errno) + "; " + NoTensorLibrary(what));
}

}  // namespace tetrion
