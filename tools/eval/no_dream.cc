#include "lib/core/error.h"
#include "lib/core/no_tensor_library.h"
#include "tools/eval/dream.h"
#include "tools/eval/session.h"

namespace tetrion {

// Of a build without the tensor library. To open the session of a run with a world model becomes
// ./tetrion, where that has started this program.
int RunDream(const EvalOptions& options, const std::atomic<bool>&, std::FILE*) {
  static_cast<void>(OpenSession(options, /*lanes=*/1));
  throw Error(ExitCode::kUsage, NoTensorLibrary("dream"));
}

}  // namespace tetrion
