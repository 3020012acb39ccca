#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "lib/core/clock.h"
#include "lib/setup/curve_options.h"
#include "tools/load/load_member.h"

namespace tetrion {

struct LoadOptions {
  std::string run_folder;   // one of these two says where the coordinator is
  std::string coordinator;  // its address
  CurveOptions curve;       // a key for all of them, and the coordinator's
  int sessions = 1000;
  double seconds = 10;              // how long they stay; 0: until the run drains or a signal comes
  bool grants = false;              // each session also asks for a range of tokens, and keeps it
  std::string log_level = "error";  // "warn" says each reconnect of each session
};

// Same results as ServiceOptions::Parse. Throws Error(kUsage).
[[nodiscard]] std::optional<int> ParseLoadOptions(int argc, const char* const* argv,
                                                  LoadOptions& options);

// Many members on one thread and one ZeroMQ context. Every line it prints counts them all:
//
//   {"time_s": 812.4, "registered": 1000, "epoch": 2, "in_epoch": 1000, "complete_s": 811.9,
//    "granted": 0, "gone": 0, "fenced": 0, "reconnects": 0, "oldest_answer_s": 0.98}
//
// Times are of the machine's monotonic clock, which other programs read, too. `epoch` is the newest
// start of the coordinator that a member has heard of, `in_epoch` the members that stand in it,
// `complete_s` when all of them did for the first time (0: not yet).
class Load {
 public:
  // Raises the limit of open files as far as the members need. Throws Error(kUsage) when it may
  // not.
  Load(const LoadOptions& options, const Clock& clock);

  // Blocks until the time is over, the run has drained or `drain` is set, then says goodbye for all
  // members. Returns the exit code: 0, or 75 when any was fenced or none ever registered. Throws
  // Error as SessionLink does.
  int Run(const std::atomic<bool>& drain, std::FILE* out);

 private:
  // One look at each member.
  void Round();
  void Print(std::FILE* out, bool last);
  bool AllGone() const;

  const LoadOptions options_;
  const Clock& clock_;
  std::function<wire::CoordinatorPlace()> place_;  // where the members look for the coordinator
  std::deque<LoadMember> members_;
  std::size_t opened_ = 0;   // the first so many have begun
  std::uint64_t epoch_ = 0;  // 0: none has ever registered
  std::int64_t complete_ns_ = 0;
  std::int64_t next_line_ns_ = 0;
};

}  // namespace tetrion
