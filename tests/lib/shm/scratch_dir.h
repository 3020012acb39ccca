#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "lib/core/error.h"

namespace tetrion {

// A fresh folder of mode 0700, removed with everything in it.
class ScratchDir {
 public:
  ScratchDir() {
    char name[] = "/dev/shm/tetrion-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What `call` throws; an Error with an empty text when it throws nothing.
inline Error ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::kOk, "");
}

// A forked process that runs `body` and then stops itself (SIGSTOP), its pause point; what it owns
// lives until Kill.
class PausedChild {
 public:
  explicit PausedChild(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      body();
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status)) << "the child ended before its pause point";
  }
  ~PausedChild() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace tetrion
