#pragma once

// A process that can open no file, as one whose descriptors are used up.

#include <sys/resource.h>
#include <unistd.h>

#include "lib/core/check.h"

namespace tetrion::testing {

// Not in the asan preset: UBSan's check of an object's type opens a pipe to read the object's
// memory, and reports an error where it gets none.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kCanForbidFiles = false;
#else
inline constexpr bool kCanForbidFiles = true;
#endif

// While it lives, every call that opens a file in this process fails with EMFILE, once it has
// opened `more`. Files that are open stay so. Not for two at once.
class NoOpenFiles {
 public:
  explicit NoOpenFiles(int more = 0) {
    TETRION_CHECK(getrlimit(RLIMIT_NOFILE, &before_) == 0, "getrlimit");
    const int lowest_free = dup(0);  // the limit is of a descriptor's number
    TETRION_CHECK(lowest_free >= 0 && close(lowest_free) == 0, "dup");
    const rlim_t most = more == 0 ? 0 : static_cast<rlim_t>(lowest_free + more);
    const rlimit few = {.rlim_cur = most, .rlim_max = before_.rlim_max};
    TETRION_CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  }
  ~NoOpenFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoOpenFiles(const NoOpenFiles&) = delete;
  NoOpenFiles& operator=(const NoOpenFiles&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace tetrion::testing
