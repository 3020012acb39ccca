#include "lib/core/nowait_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <climits>
#include <string>

namespace tetrion {
namespace {

// What can be read without waiting.
std::string Drain(int fd) {
  std::string text;
  char buffer[4096];
  pollfd readable = {fd, POLLIN, 0};
  while (poll(&readable, 1, 0) == 1 && (readable.revents & POLLIN) != 0) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

class NoWaitWriterTest : public ::testing::Test {
 protected:
  NoWaitWriterTest() {
    EXPECT_EQ(pipe(fds_), 0);
    alarm(60);  // the property: nothing here blocks
  }
  ~NoWaitWriterTest() override {
    alarm(0);
    CloseReader();
    close(fds_[1]);
  }
  void CloseReader() {
    if (fds_[0] >= 0) close(fds_[0]);
    fds_[0] = -1;
  }

  int fds_[2] = {-1, -1};
};

TEST_F(NoWaitWriterTest, TextArrivesWhole) {
  NoWaitWriter writer(fds_[1]);
  EXPECT_TRUE(writer.Write("one\n"));
  const std::string big(3 * PIPE_BUF + 17, 'x');
  EXPECT_TRUE(writer.Write(big + "\n"));
  EXPECT_EQ(Drain(fds_[0]), "one\n" + big + "\n");
}

TEST_F(NoWaitWriterTest, FullPipeTakesNothingAndItsFlagsStay) {
  NoWaitWriter writer(fds_[1]);
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    if (writer.Write(line)) expected += line;
  }
  EXPECT_FALSE(writer.Write("more\n"));
  EXPECT_EQ(fcntl(fds_[1], F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(Drain(fds_[0]), expected) << "a line is there or not, never torn";
  EXPECT_TRUE(writer.Write("again\n"));
  EXPECT_EQ(Drain(fds_[0]), "again\n");
}

TEST_F(NoWaitWriterTest, LongLineThatWasTornIsEndedBeforeTheNext) {
  NoWaitWriter writer(fds_[1]);
  EXPECT_FALSE(writer.Write(std::string(1 << 20, 'x') + "\n"));
  const std::string begun = Drain(fds_[0]);
  EXPECT_EQ(begun.find('\n'), std::string::npos);
  EXPECT_TRUE(writer.Write("next\n"));
  EXPECT_EQ(Drain(fds_[0]), "\nnext\n");
}

TEST_F(NoWaitWriterTest, PipeWithoutAReaderIsNoSignalAndNoException) {
  NoWaitWriter writer(fds_[1]);
  CloseReader();
  EXPECT_FALSE(writer.Write("lost\n"));
  NoWaitWriter late(fds_[1]);
  EXPECT_FALSE(late.Write("lost\n"));
}

TEST_F(NoWaitWriterTest, FullDiskAndClosedDescriptorLoseText) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  NoWaitWriter writer(full);
  EXPECT_FALSE(writer.Write("lost\n"));
  close(full);
  EXPECT_FALSE(writer.Write("lost\n"));
}

// The hard case: a terminal polls as writable and takes a part of a line, then nothing.
TEST_F(NoWaitWriterTest, TerminalThatNobodyReadsTakesNothing) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const int user = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(user, 0);
  NoWaitWriter writer(user);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) taken += writer.Write("a line of some length\n") ? 1 : 0;
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, 20'000);
  EXPECT_FALSE(Drain(terminal).empty());
  EXPECT_TRUE(writer.Write("again\n"));
  EXPECT_NE(Drain(terminal).find("again"), std::string::npos);
  ASSERT_EQ(tcflow(user, TCOOFF), 0);  // Ctrl-S
  EXPECT_FALSE(writer.Write("lost\n"));
  ASSERT_EQ(tcflow(user, TCOON), 0);
  EXPECT_TRUE(writer.Write("seen\n"));
  close(terminal);
  EXPECT_FALSE(writer.Write("lost\n"));  // hung up
  close(user);
}

}  // namespace
}  // namespace tetrion
