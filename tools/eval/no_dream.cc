#include "lib/core/check.h"
#include "tools/eval/dream.h"
#include "tools/eval/session.h"

namespace tetrion {

// Of a build without the tensor library. OpenSession does not return here: it refuses a run that
// has no world model, and one that has needs the library.
int RunDream(const EvalOptions& options, const std::atomic<bool>&, std::FILE*) {
  static_cast<void>(OpenSession(options, /*lanes=*/1));
  TETRION_CHECK(false, "a world model needs the tensor library");
}

}  // namespace tetrion
