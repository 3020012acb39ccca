#include "lib/core/check.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace tetrion {
namespace {

TEST(CheckDeathTest, FailedCheckSaysWhereAndWhatAndAborts) {
  EXPECT_DEATH(TETRION_CHECK(1 == 2, "numbers differ"),
               "check_test.cc:[0-9]+: CHECK failed: 1 == 2: numbers differ");
}

TEST(CheckDeathTest, FailedCheckAbortsAlsoWhenNothingReadsItsLastWords) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_NONBLOCK), 0);
  while (write(fds[1], "x", 1) == 1) continue;
  fcntl(fds[1], F_SETFL, 0);
  EXPECT_EXIT(
      {
        alarm(30);
        dup2(fds[1], STDERR_FILENO);
        TETRION_CHECK(false, "in a full pipe");
      },
      ::testing::KilledBySignal(SIGABRT), "");
  close(fds[0]);
  close(fds[1]);
}

}  // namespace
}  // namespace tetrion
