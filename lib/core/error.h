#pragma once

#include <stdexcept>
#include <string>

namespace tetrion {

// What a program's exit code says to its caller (sysexits numbering).
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,      // a bug of ours
  kUsage = 2,         // unknown or out-of-range option, port in use, unusable path
  kUnsaved = 74,      // EX_IOERR: a run's last part could not be stored, or a result not be printed
  kTryAgain = 75,     // EX_TEMPFAIL: a peer or a resource is gone; the supervisor decides
  kConfig = 78,       // EX_CONFIG: configuration or version mismatch; the message gives both
  kTerminated = 143,  // second SIGTERM or SIGINT, or too long after a SIGHUP
};

// The one exception type: failures of set-up and I/O. The message says what failed, where, and what
// to do. Caught in main (lib/run/program.h), which prints it and exits with `code()`.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

}  // namespace tetrion
