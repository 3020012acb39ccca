#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tools/up/supervisor.h"

namespace tetrion {

// Children as real processes: each in a process group of its own (a Ctrl-C at the terminal reaches
// only this process), stdin from /dev/null, output through a pipe into <log_folder>/<name>.log as
// soon as that folder exists. The last lines of each child are kept for error messages.
//
// When this process dies, also of kill -9, the kernel sends every child a SIGHUP
// (PR_SET_PDEATHSIG): a service then drains by itself, and SignalWatcher bounds how long. SIGHUP
// and not SIGTERM, since a child that was asked to drain already would take that for "at once". The
// signal comes with the death of the starting thread: call Start from the main thread.
//
// One thread, except KillAll, which any thread may call.
class ChildProcesses final : public ProcessHost {
 public:
  static constexpr std::size_t kMaxChildren = 256;
  static constexpr std::size_t kTailLines = 8;

  explicit ChildProcesses(std::string log_folder) : log_folder_(std::move(log_folder)) {}
  // Kills what is left.
  ~ChildProcesses() override;

  pid_t Start(const std::string& name, const std::vector<std::string>& command) override;
  std::optional<ChildExit> Poll(pid_t pid) override;
  void Signal(pid_t pid, int signal) override;
  std::string LastLine(const std::string& name) const override;

  // Moves what the children have written into their logs; never blocks. Poll does it too.
  void PumpOutput();
  // The last lines that any process of this name has written.
  std::vector<std::string> LastLines(const std::string& name) const;
  // SIGKILL to every group, then waits for the children themselves (at most 2 s). Allocates
  // nothing.
  void KillAll();

 private:
  struct Child {
    std::string name;
    int output_fd = -1;
  };
  struct Log {
    std::string pending;           // not yet in the file
    std::string line;              // begun, without its end
    std::deque<std::string> tail;  // last whole lines
  };

  void Pump(Child& child);
  void Take(Log& log, const char* text, std::size_t bytes);
  void Flush(const std::string& name, Log& log);

  const std::string log_folder_;
  std::map<pid_t, Child> children_;
  std::map<std::string, Log> logs_;
  // Pids of live children, for KillAll; 0: free.
  std::array<std::atomic<pid_t>, kMaxChildren> live_{};
};

}  // namespace tetrion
