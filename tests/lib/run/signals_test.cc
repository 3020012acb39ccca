#include "lib/run/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "lib/core/error.h"
#include "lib/run/main_guard.h"

namespace tetrion {
namespace {

constexpr int kDeadlineMs = 30'000;

// Runs `body` in a child of one thread, as a main would, and returns its wait status.
template <typename F>
int StatusOfChild(F body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kDeadlineMs / 1000);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

bool Readable(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

TEST(SignalWatcherTest, FirstSignalOnlySetsFlagAndDescriptor) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const int status = StatusOfChild([signal] {
      SignalWatcher watcher;
      if (watcher.Draining() || Readable(watcher.drain_fd()) || watcher.WaitFor(1)) return 1;
      kill(getpid(), signal);
      if (!watcher.WaitFor(kDeadlineMs)) return 2;
      return Readable(watcher.drain_fd()) && watcher.drain_flag().load() ? 0 : 3;
    });
    EXPECT_TRUE(WIFEXITED(status)) << signal;
    EXPECT_EQ(WEXITSTATUS(status), 0) << signal;
  }
}

TEST(SignalWatcherTest, SecondSignalRunsTheHookAndEndsWith143) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const int status = StatusOfChild([&] {
    SignalWatcher watcher;
    watcher.SetEmergencyHook([&] { (void)!write(pipe_fds[1], "hook", 4); });
    kill(getpid(), SIGTERM);
    if (!watcher.WaitFor(kDeadlineMs)) return 1;
    kill(getpid(), SIGINT);
    while (true) pause();
    return 2;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
  close(pipe_fds[1]);
  char text[8] = {};
  EXPECT_EQ(read(pipe_fds[0], text, sizeof text), 4);
  EXPECT_STREQ(text, "hook");
  close(pipe_fds[0]);
}

TEST(SignalWatcherTest, RequestDrainCountsAsNoSignal) {
  const int status = StatusOfChild([] {
    SignalWatcher watcher;
    watcher.RequestDrain();
    if (!watcher.Draining() || !Readable(watcher.drain_fd())) return 1;
    kill(getpid(), SIGTERM);  // the first one: the process goes on
    return watcher.WaitFor(50) ? 0 : 2;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SignalWatcherTest, ChildThatUnblocksDiesOfSigterm) {
  const int status = StatusOfChild([] {
    SignalWatcher watcher;
    SignalWatcher::UnblockInChild();
    raise(SIGTERM);
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(MainGuardTest, ErrorsBecomeOneLineAndTheirCode) {
  const char* argv[] = {"/usr/bin/tetrion-actor"};
  testing::internal::CaptureStderr();
  const int code = GuardedMain(1, argv, [](int, const char* const*) -> int {
    throw Error(ExitCode::kConfig, "have 1, need 2");
  });
  EXPECT_EQ(code, 78);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tetrion-actor: error: have 1, need 2\n");
}

TEST(MainGuardTest, OtherExceptionsAreInternalAndResultsPass) {
  const char* argv[] = {"tetrion-actor"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(GuardedMain(1, argv, [](int, const char* const*) -> int { throw std::bad_alloc(); }),
            1);
  EXPECT_EQ(GuardedMain(1, argv, [](int, const char* const*) -> int { throw 7; }), 1);
  EXPECT_EQ(GuardedMain(1, argv, [](int argc, const char* const*) { return argc + 41; }), 42);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("tetrion-actor: error: "),
            std::string::npos);
}

}  // namespace
}  // namespace tetrion
