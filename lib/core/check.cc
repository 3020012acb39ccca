#include "lib/core/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "lib/core/nowait_writer.h"

namespace tetrion {

// Waits for no reader of stderr: a process with a bug must not live on in a full pipe.
void CheckFailed(const char* file, int line, const char* condition, const char* message) {
  char text[1024];
  const int bytes = std::snprintf(text, sizeof text, "%s:%d: CHECK failed: %s: %s\n", file, line,
                                  condition, message);
  const auto length = std::min(static_cast<std::size_t>(std::max(bytes, 1)), sizeof text - 1);
  text[length - 1] = '\n';
  (void)NoWaitWriter(STDERR_FILENO).Write({text, length});
  std::abort();
}

}  // namespace tetrion
