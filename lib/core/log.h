#pragma once

#include <spdlog/spdlog.h>

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
void SetUpLogging(const LogConfig& config);

// Text as a JSON string literal, quotes included.
std::string JsonQuoted(const std::string& text);

namespace log = ::spdlog;

}  // namespace tetrion
