#include "lib/core/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "lib/core/error.h"

namespace tetrion {
namespace {

// Limits hold for a process, so each case runs in one of its own: 0 is success.
template <typename Body>
int InAProcess(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void SetLimit(rlim_t soft, rlim_t hard) {
  const rlimit limit = {soft, hard};
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(FileLimitTest, IsRaisedToWhatTheProcessMayHave) {
  EXPECT_EQ(InAProcess([] {
              SetLimit(100, 200);
              RaiseFileLimit(64, "a test");
              rlimit now{};
              getrlimit(RLIMIT_NOFILE, &now);
              return now.rlim_cur == 200 ? 0 : 1;
            }),
            0);
}

TEST(FileLimitTest, TooFewAreRefusedWithBothNumbers) {
  EXPECT_EQ(InAProcess([] {
              SetLimit(100, 200);
              if (geteuid() == 0 && seteuid(65534) != 0) return 2;  // root may raise any limit
              try {
                RaiseFileLimit(1000, "a test");
                return 3;
              } catch (const Error& error) {
                const std::string text = error.what();
                return text.find("a test needs 1000 open files, the hard limit is 200") == 0 ? 0
                                                                                             : 4;
              }
            }),
            0);
}

}  // namespace
}  // namespace tetrion
