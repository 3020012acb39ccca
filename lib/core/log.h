#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string>

namespace tetrion {

struct LogConfig {
  std::string service;         // "coordinator", "actor", "learner", "up"
  std::string run;             // run name; empty before it is known
  std::string id;              // which actor; empty elsewhere
  bool json = false;           // one JSON object a line instead of text
  std::string level = "info";  // trace, debug, info, warn, error
  std::string file;            // also append to this file; empty: stderr only
};

// Sets up the process-wide logger (spdlog's default, stderr plus an optional file): one line per
// event, never per step. Every line carries service, run and id. Called by main, and again when the
// run's name becomes known. Throws Error(kUsage) when the file cannot be opened.
//
// A log call waits for no reader and never throws: while stderr (a stopped terminal, a full pipe)
// or the file (a full disk) takes nothing, lines are dropped; the first line afterwards says how
// many. Any thread may log.
void SetUpLogging(const LogConfig& config);

// Lines of this process so far, dropped ones too. Any thread.
std::uint64_t LogLines();

// Lines that this process has dropped so far, of stderr and file together. Any thread.
std::uint64_t LostLogLines();

namespace log = ::spdlog;

}  // namespace tetrion
