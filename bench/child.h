#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/core/check.h"

namespace tetrion::bench {

// fork(), but the child gets `number` when the calling thread ends, also by a kill: no benchmark
// leaves a process behind.
inline pid_t ForkChild(int number = SIGKILL) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  TETRION_CHECK(child >= 0, "a second process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, number);
    if (getppid() != parent) _exit(1);  // it ended before it could be watched
  }
  return child;
}

}  // namespace tetrion::bench
