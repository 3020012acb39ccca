#pragma once

#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "tools/up/run_status.h"

namespace tetrion {

// What the user of `./tetrion up` sees. Pure functions from figures to text, and a small class that
// knows when to print.

// "1.23 M", "45.6 k", "789".
std::string HumanNumber(double value);
// "1h02m", "3m05s", "42s".
std::string HumanSeconds(double seconds);

// The live table: a fixed number of lines of at most 100 columns.
std::string StatusTable(const RunStatus& status, int actors_up);
// One line for logs and pipes.
std::string StatusLine(const RunStatus& status);

struct SummaryInput {
  RunStatus status;
  std::string run;
  std::string runs_dir;    // named in the commands when it is not the default
  std::string checkpoint;  // path; empty: none was written
  double wall_s = 0;
  int exit_code = 0;   // of the run
  std::string failed;  // the service that failed first; empty: none did
  std::string log;     // path of its log
};
// The last words: what failed, figures, checkpoint and the commands that go on from here. Of a run
// that failed before it had trained anything, or of which nothing is known, only the failure.
std::string SummaryText(const SummaryInput& input);

struct Screen {
  std::uint64_t lines_between = 0;  // printed by others so far: the next table stands below them
  std::size_t columns = 0;          // 0: any number
};

// Prints the table each second, over the one before, when `terminal`; otherwise a line every 10 s,
// the first one as soon as an update was made. Of a table's line only what the screen has columns
// for: a line that wraps would not be drawn over.
class Console {
 public:
  static constexpr std::int64_t kTablePeriodNs = kNanosPerSecond;
  static constexpr std::int64_t kLinePeriodNs = 10 * kNanosPerSecond;

  Console(bool terminal, const Clock& clock) : terminal_(terminal), clock_(clock) {}
  // The text to print now, empty when it is not time.
  std::string Show(const RunStatus& status, int actors_up, const Screen& screen = {});

 private:
  const bool terminal_;
  const Clock& clock_;
  std::int64_t next_ns_ = 0;
  int lines_shown_ = 0;
  std::uint64_t lines_between_ = 0;
};

}  // namespace tetrion
