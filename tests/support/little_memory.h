#pragma once

// Work in a process that has little memory left.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>

namespace tetrion::testing {

// What a child process ends with that may have `room_bytes` more of address space than this one:
// what `work` returns in it, below 100; 102 for an exception, which is printed. -1 where it was
// ended by a signal or none could be made.
inline int ExitWithRoom(std::uint64_t room_bytes, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bytes = pages * static_cast<rlim_t>(::getpagesize()) + room_bytes;
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(100);
    try {
      ::_exit(work());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(102);
    }
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tetrion::testing
