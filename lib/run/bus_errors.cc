#include "lib/run/bus_errors.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "lib/core/error.h"

namespace tetrion {
namespace {

// Everything below runs in a signal handler: no memory is allocated, no lock taken, nothing called
// but system calls and functions of plain memory.

std::string_view told_program;
std::atomic_flag is_ending = ATOMIC_FLAG_INIT;

// The lines of /proc/self/maps, "BEGIN-END rw-s OFFSET DEVICE INODE   PATH", numbers in base 16.
class MapLines {
 public:
  MapLines() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapLines() { close(fd_); }
  MapLines(const MapLines&) = delete;
  MapLines& operator=(const MapLines&) = delete;

  // The next line, valid until the next call; false behind the last. One that is longer than any
  // path of ours comes in pieces.
  bool Next(std::string_view& line) {
    std::memmove(text_, text_ + taken_, bytes_ - taken_);
    bytes_ -= taken_;
    taken_ = 0;
    while (std::memchr(text_, '\n', bytes_) == nullptr && bytes_ < sizeof text_) {
      const ssize_t got = read(fd_, text_ + bytes_, sizeof text_ - bytes_);
      if (got <= 0) break;
      bytes_ += static_cast<std::size_t>(got);
    }
    const void* const end = std::memchr(text_, '\n', bytes_);
    const std::size_t length =
        end == nullptr ? bytes_ : static_cast<std::size_t>(static_cast<const char*>(end) - text_);
    line = {text_, length};
    taken_ = end == nullptr ? length : length + 1;
    return taken_ > 0;
  }

 private:
  const int fd_;
  char text_[8192];
  std::size_t bytes_ = 0, taken_ = 0;
};

// The path of the file that is mapped at `address`; empty where none is.
std::string_view PathAt(std::uintptr_t address, MapLines& lines) {
  for (std::string_view line; lines.Next(line);) {
    std::uintptr_t begin = 0, end = 0;
    const char* const last = line.data() + line.size();
    const auto first_number = std::from_chars(line.data(), last, begin, 16);
    if (first_number.ptr == last || *first_number.ptr != '-') continue;
    (void)std::from_chars(first_number.ptr + 1, last, end, 16);
    if (address < begin || address >= end) continue;
    const std::size_t path = line.find('/');
    return path == std::string_view::npos ? "" : line.substr(path);
  }
  return "";
}

// As one line, so that no other program's text comes between. Waits for no reader: a terminal or a
// pipe that stands still gets nothing.
void Say(std::initializer_list<std::string_view> parts) {
  char line[PIPE_BUF];
  std::size_t bytes = 0;
  for (const std::string_view part : parts) {
    const std::size_t more = std::min(part.size(), sizeof line - bytes);
    std::memcpy(line + bytes, part.data(), more);
    bytes += more;
  }
  pollfd reader = {STDERR_FILENO, POLLOUT, 0};
  if (poll(&reader, 1, 0) != 1 || reader.revents != POLLOUT) return;
  // Nothing is left to do about a write that fails.
  static_cast<void>(!write(STDERR_FILENO, line, bytes));
}

void OnBusError(int, siginfo_t* info, void*) {
  const bool is_missing = info->si_code == BUS_ADRERR;
  if (is_missing && is_ending.test_and_set()) {
    while (true) pause();  // another thread says so
  }
  MapLines lines;
  const std::string_view path =
      is_missing ? PathAt(reinterpret_cast<std::uintptr_t>(info->si_addr), lines) : "";
  if (path.empty()) {
    signal(SIGBUS, SIG_DFL);         // the access is made again
    if (!is_missing) raise(SIGBUS);  // it came by kill, perhaps
    return;
  }
  Say({told_program, ": error: ", path,
       " was cut off while this program had it mapped, or its device is full or fails; find out "
       "what writes to it, then start again\n"});
  _exit(static_cast<int>(ExitCode::kTryAgain));
}

}  // namespace

void TellBusErrors(std::string_view program) {
  told_program = program;
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace tetrion
