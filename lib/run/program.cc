#include "lib/run/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "lib/core/error.h"
#include "lib/core/nowait_writer.h"
#include "lib/run/bus_errors.h"
#include "lib/run/environment.h"

// Written into the build folder by cmake/write_revision.cmake.
#include "generated/revision_text.h"

namespace tetrion {
namespace {

// The last part of argv[0].
std::string_view ProgramName(int argc, const char* const* argv) noexcept {
  const std::string_view path = argc > 0 ? argv[0] : "tetrion";
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Waits for no reader: a process must end also while its terminal or its pipe stands still.
int Report(std::string_view program, const char* what, ExitCode code) noexcept {
  char line[4096];
  const int bytes = std::snprintf(line, sizeof line, "%.*s: error: %s\n",
                                  static_cast<int>(program.size()), program.data(), what);
  const auto length = std::min(static_cast<std::size_t>(std::max(bytes, 1)), sizeof line - 1);
  line[length - 1] = '\n';
  (void)NoWaitWriter(STDERR_FILENO).Write({line, length});
  return static_cast<int>(code);
}

// A standard stream that the caller closed must not become the number of the first file opened: its
// results or its log would land in a checkpoint. Opened the wrong way round, it fails as before.
void OccupyStandardStreams() noexcept {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

// Why a part of what was printed is not in standard output, as an errno; 0 when all is, or when the
// reader has closed the pipe, as `head` does, since it wants no more. Only results and --help are
// printed to stdout. Logs and the table of `up` go by NoWaitWriter, which may drop them: there the
// run counts, not the text.
int UnwrittenOutput() noexcept {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  // The stream keeps no reason: one more byte fails for the same.
  if (failed_before) (void)std::fputc('\n', stdout);
  if (std::fflush(stdout) == 0 && !failed_before) return 0;
  if (errno == EPIPE) return 0;
  return errno == 0 ? EIO : errno;
}

}  // namespace

int GuardedMain(int argc, const char* const* argv,
                const std::function<int(int, const char* const*)>& fn) noexcept {
  const std::string_view program = ProgramName(argc, argv);
  OccupyStandardStreams();
  TellBusErrors(program);
  try {
    const int code = fn(argc, argv);
    const int reason = code == 0 ? UnwrittenOutput() : 0;
    if (reason == 0) return code;
    const std::string text = std::string("cannot write standard output: ") + std::strerror(reason);
    return Report(program, text.c_str(), ExitCode::kUnsaved);
  } catch (const Error& error) {
    const std::string text = error.what() + NoteOnVariables(error.what());
    return Report(program, text.c_str(), error.code());
  } catch (const std::bad_alloc&) {
    return Report(program, "out of memory: free some, or raise ulimit -v or the container's limit",
                  ExitCode::kTryAgain);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      return Report(program, error.what(), ExitCode::kInternal);
    }
    return Report(program,
                  "cannot start a thread: the limit of threads or of memory is reached; raise "
                  "ulimit -u and ulimit -v, or the container's limits",
                  ExitCode::kTryAgain);
  } catch (const std::exception& error) {
    return Report(program, error.what(), ExitCode::kInternal);
  } catch (...) {
    return Report(program, "unknown exception", ExitCode::kInternal);
  }
}

const char* Revision() {
  return kRevisionText;
}
const char* Preset() {
  return kPresetText;
}
const char* Version() {
  return kVersionText;
}

}  // namespace tetrion
