#include "lib/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace tetrion {

void CheckFailed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s: %s\n", file, line, condition, message);
  std::abort();
}

}  // namespace tetrion
