#include "lib/run/signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/run/program.h"

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

// Whether the watcher has yet to take the signal.
bool Pending(int signal) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

TEST(SignalWatcherTest, FirstSignalOnlySetsTheFlag) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const int status = StatusOfChild([signal] {
      SignalWatcher watcher;
      if (watcher.Draining() || watcher.WaitFor(1)) return 1;
      kill(getpid(), signal);
      if (!watcher.WaitFor(kDeadlineMs)) return 2;
      return watcher.Draining() && watcher.drain_flag().load() ? 0 : 3;
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

TEST(SignalWatcherTest, NewestHookCountsAndAnEmptyOneLeavesNone) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const auto say = [&](char letter) {
    return [&, letter] { (void)!write(pipe_fds[1], &letter, 1); };
  };
  for (const bool taken_away : {false, true}) {
    const int status = StatusOfChild([&] {
      SignalWatcher watcher;
      watcher.SetEmergencyHook(say('a'));
      watcher.SetEmergencyHook(taken_away ? std::function<void()>() : say('b'));
      kill(getpid(), SIGTERM);
      if (!watcher.WaitFor(kDeadlineMs)) return 1;
      kill(getpid(), SIGTERM);
      while (true) pause();
      return 2;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143);
  }
  close(pipe_fds[1]);
  char text[8] = {};
  EXPECT_EQ(read(pipe_fds[0], text, sizeof text), 1);
  EXPECT_STREQ(text, "b");
  close(pipe_fds[0]);
}

// A closing terminal: shell, kernel and systemd each send a SIGHUP, in any order with a SIGTERM.
TEST(SignalWatcherTest, HangupNeverCountsAsTheSecondSignal) {
  const std::vector<std::vector<int>> orders = {
      {SIGHUP, SIGHUP, SIGHUP}, {SIGTERM, SIGHUP, SIGHUP}, {SIGHUP, SIGTERM, SIGHUP}};
  for (const std::vector<int>& order : orders) {
    const int status = StatusOfChild([&order] {
      SignalWatcher watcher;
      for (const int signal : order) {
        kill(getpid(), signal);
        if (!watcher.WaitFor(kDeadlineMs)) return 1;
        while (Pending(signal)) sched_yield();  // else the kernel merges it with the next
      }
      constexpr int kTimeToDieMs = 20;  // a watcher that counts wrongly ends the process
      poll(nullptr, 0, kTimeToDieMs);
      return 0;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << order[0] << " " << order[1];
  }
}

TEST(SignalWatcherTest, UserAsksTwiceAlsoAfterAHangup) {
  const int status = StatusOfChild([] {
    SignalWatcher watcher;
    for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
      kill(getpid(), signal);
      while (Pending(signal)) sched_yield();
    }
    while (true) pause();
    return 0;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143);
}

TEST(SignalWatcherTest, ProcessThatHangsAfterAHangupIsEnded) {
  const int status = StatusOfChild([] {
    constexpr std::int64_t kLimitMs = 20;
    SignalWatcher watcher(kLimitMs);
    kill(getpid(), SIGHUP);
    while (true) pause();
    return 0;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 143);
}

TEST(SignalWatcherTest, HangupThatWasIgnoredAtTheStartStaysIgnored) {
  const int status = StatusOfChild([] {
    signal(SIGHUP, SIG_IGN);
    SignalWatcher watcher;
    kill(getpid(), SIGHUP);
    if (watcher.WaitFor(50)) return 1;
    kill(getpid(), SIGTERM);
    return watcher.WaitFor(kDeadlineMs) ? 0 : 2;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(SignalWatcherTest, RequestDrainCountsAsNoSignal) {
  const int status = StatusOfChild([] {
    SignalWatcher watcher;
    watcher.RequestDrain();
    if (!watcher.Draining()) return 1;
    kill(getpid(), SIGTERM);  // the first one: the process goes on
    while (Pending(SIGTERM)) sched_yield();
    poll(nullptr, 0, 20);  // a watcher that takes it for the second ends the process now
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
  ::testing::internal::CaptureStderr();
  const int code = GuardedMain(1, argv, [](int, const char* const*) -> int {
    throw Error(ExitCode::kConfig, "have 1, need 2");
  });
  EXPECT_EQ(code, 78);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tetrion-actor: error: have 1, need 2\n");
}

TEST(MainGuardTest, ReaderThatStandsStillDoesNotKeepTheProcess) {
  const int status = StatusOfChild([] {
    int fds[2];
    if (pipe(fds) != 0) return 1;
    dup2(fds[1], STDERR_FILENO);
    const char* argv[] = {"tetrion-actor"};
    for (int i = 0; i < 10'000; ++i) {
      GuardedMain(1, argv, [](int, const char* const*) -> int { throw std::bad_alloc(); });
    }
    return 0;
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(MainGuardTest, LongMessageEndsWithItsLine) {
  const char* argv[] = {"tetrion-actor"};
  ::testing::internal::CaptureStderr();
  GuardedMain(1, argv, [](int, const char* const*) -> int {
    throw Error(ExitCode::kConfig, std::string(10'000, 'x'));
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(said.size(), 4096U);
  EXPECT_EQ(said.substr(said.size() - 2), "x\n");
}

TEST(MainGuardTest, LimitsOfTheMachineAreNamedAndMayPass) {
  const char* argv[] = {"tetrion-actor"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(GuardedMain(1, argv, [](int, const char* const*) -> int { throw std::bad_alloc(); }),
            75);
  EXPECT_EQ(GuardedMain(1, argv,
                        [](int, const char* const*) -> int {
                          throw std::system_error(EAGAIN, std::system_category());
                        }),
            75);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("error: out of memory"), std::string::npos) << said;
  EXPECT_NE(said.find("cannot start a thread"), std::string::npos) << said;
}

TEST(MainGuardTest, OtherExceptionsAreInternalAndResultsPass) {
  const char* argv[] = {"tetrion-actor"};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(GuardedMain(1, argv,
                        [](int, const char* const*) -> int {
                          throw std::system_error(EBADF, std::system_category());
                        }),
            1);
  EXPECT_EQ(GuardedMain(1, argv, [](int, const char* const*) -> int { throw 7; }), 1);
  EXPECT_EQ(GuardedMain(1, argv, [](int argc, const char* const*) { return argc + 41; }), 42);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("tetrion-actor: error: "),
            std::string::npos);
}

// The exit code of a program that prints `bytes` while its stdout is `fd`, closed when that is -1.
int CodeOfPrinting(int fd, std::size_t bytes, bool flushes = false) {
  std::fflush(stdout);
  const int status = StatusOfChild([&] {
    if (fd >= 0) dup2(fd, STDOUT_FILENO);
    if (fd < 0) close(STDOUT_FILENO);
    std::clearerr(stdout);  // the tests' own stdout may be closed, too
    const char* argv[] = {"tetrion-eval"};
    return GuardedMain(1, argv, [&](int, const char* const*) {
      SignalWatcher watcher;
      std::fputs(std::string(bytes, '.').c_str(), stdout);
      if (flushes) std::fflush(stdout);
      return 0;
    });
  });
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MainGuardTest, ResultThatCannotBeWrittenIsAnErrorAlsoWhereItsStreamHasForgottenWhy) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const std::string no_space =
      "tetrion-eval: error: cannot write standard output: No space left on device\n";
  for (const bool flushes : {false, true}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{1} << 20}) {
      ::testing::internal::CaptureStderr();
      EXPECT_EQ(CodeOfPrinting(full, bytes, flushes), 74) << bytes;
      EXPECT_EQ(::testing::internal::GetCapturedStderr(), no_space) << bytes;
    }
  }
  EXPECT_EQ(CodeOfPrinting(full, 0), 0);
  close(full);
}

TEST(MainGuardTest, ClosedStandardOutputIsNotTheFirstFileThatIsOpened) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(CodeOfPrinting(-1, 1), 74);  // its SignalWatcher opens files that take what is written
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "tetrion-eval: error: cannot write standard output: Bad file descriptor\n");
  EXPECT_EQ(CodeOfPrinting(-1, 0), 0);
}

TEST(MainGuardTest, ReaderOfTheResultMayLeave) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  close(fds[0]);
  for (const bool flushes : {false, true}) EXPECT_EQ(CodeOfPrinting(fds[1], 1, flushes), 0);
  close(fds[1]);
}

}  // namespace
}  // namespace tetrion
