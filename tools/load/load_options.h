#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tetrion {

struct LoadOptions {
  std::string run_folder;   // one of these two says where the coordinator is
  std::string coordinator;  // its address
  int sessions = 1000;
  double seconds = 10;              // how long they stay; 0: until the run drains or a signal comes
  bool grants = false;              // each session also asks for a range of tokens, and keeps it
  std::string log_level = "error";  // "warn" says each reconnect of each session
};

// Same results as ServiceOptions::Parse. Throws Error(kUsage).
[[nodiscard]] std::optional<int> ParseLoadOptions(int argc, const char* const* argv,
                                                  LoadOptions& options);

}  // namespace tetrion
