#include "lib/core/nowait_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>

namespace tetrion {
namespace {

// -1 where the kernel gives none (another user's terminal, a pipe without a reader).
int OwnDescription(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) return -1;
  if (!S_ISFIFO(info.st_mode) && isatty(fd) == 0) return -1;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

NoWaitWriter::NoWaitWriter(int fd) : fd_(fd), own_(OwnDescription(fd)) {}

bool NoWaitWriter::Write(std::string_view text) noexcept {
  if (torn_ && !WriteAll("\n")) return false;
  return WriteAll(text);
}

// Also keeps SIGPIPE away: a pipe without a reader polls as POLLERR.
bool NoWaitWriter::TakesMore() const noexcept {
  pollfd ready = {WrittenTo(), POLLOUT, 0};
  return poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT;
}

bool NoWaitWriter::WriteAll(std::string_view text) noexcept {
  constexpr std::size_t kPieceBytes = PIPE_BUF;  // a writable pipe takes so much without waiting
  while (!text.empty()) {
    if (!TakesMore()) return false;
    const std::size_t piece = std::min(text.size(), kPieceBytes);
    const ssize_t written = write(WrittenTo(), text.data(), piece);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    torn_ = text[static_cast<std::size_t>(written) - 1] != '\n';
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace tetrion
