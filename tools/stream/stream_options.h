#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/run/run_folder.h"

namespace tetrion {

struct StreamOptions {
  std::string command;  // kernel, host, inspect or layout
  std::string region;   // the file or device that is mapped
  int size_mib = 1;     // of a region that the kernel makes: 1 or 2
  double wait_s = 30;   // longest wait for the other end to appear
  int peer_timeout_ms = 5000;
  bool no_stream = false;  // steps by command and blob instead of the stream rings
  bool stay = false;       // go on when the other end is lost or breaks the protocol
  int spins = -1;          // looks before an end yields its core; -1: as the machine wants it
  std::uint32_t doorbell_every = 0;  // 0: on empty -> non-empty; N: every N entries

  // Of the kernel.
  std::string policy = "linear";  // linear, random or checkpoint:RUN
  std::string runs_dir = DefaultRunsDir();
  std::int64_t episodes = 0;  // 0: no end
  std::int64_t steps = 0;     // 0: no end

  // Of the host.
  std::string env = "cartpole";
  int max_steps = 500;

  // Of both.
  std::uint64_t seed = 1;
  // The linear policy: the host uploads it if given; a kernel plays by it without an uploaded one.
  bool weights_given = false;
  std::array<float, 4> weights = {0.1F, 0.5F, 2.0F, 2.0F};
  int last = 4;  // inspect: entries shown of each ring
};

// Same results as ServiceOptions::Parse. Throws Error(kUsage).
[[nodiscard]] std::optional<int> ParseStreamOptions(int argc, const char* const* argv,
                                                    StreamOptions& options);

}  // namespace tetrion
