#pragma once

namespace tetrion {

// Prints file, line, condition and message to stderr and aborts. For our own bugs only: expected
// outcomes are enum results, set-up and I/O failures are tetrion::Error.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const char* message);

}  // namespace tetrion

// Always on, also in release builds; keep it off per-cell loops.
#define TETRION_CHECK(condition, message)                              \
  do {                                                                 \
    if (!(condition)) [[unlikely]]                                     \
      ::tetrion::CheckFailed(__FILE__, __LINE__, #condition, message); \
  } while (false)
