#pragma once

#include <string_view>

#include "lib/core/file.h"

namespace tetrion {

// Writes text to a descriptor whose reader may be stopped or gone, and never waits for that reader:
// what the descriptor does not take at once is dropped. For logs and for what a person watches.
//
//   pipe, socket    asked with poll before each piece of at most PIPE_BUF bytes
//   terminal        written through a description of our own with O_NONBLOCK: a terminal that polls
//                   as writable may still stop in the middle of a line
//   regular file    takes everything as long as the disk has room
//
// The given descriptor keeps its flags: its open file description may be shared with the shell.
// For a pipe that another process also writes to, that process may take the room between poll and
// write; so pipes get a description of our own, too, where the kernel gives one.
// One thread at a time; no exceptions, also not for EPIPE, EIO and ENOSPC.
class NoWaitWriter {
 public:
  // `fd` stays the caller's and must outlive the writer.
  explicit NoWaitWriter(int fd);
  NoWaitWriter(const NoWaitWriter&) = delete;
  NoWaitWriter& operator=(const NoWaitWriter&) = delete;

  // `text`: whole lines, the last with its newline. True: all of it was written. False: the rest
  // was dropped; when a line was torn, the next Write first ends it with a newline.
  bool Write(std::string_view text) noexcept;

 private:
  bool WriteAll(std::string_view text) noexcept;
  bool TakesMore() const noexcept;
  int WrittenTo() const noexcept { return own_.valid() ? own_.get() : fd_; }

  const int fd_;
  const FileDescriptor own_;  // invalid: fd_ is written to
  bool torn_ = false;         // the last byte written was not a newline
};

}  // namespace tetrion
