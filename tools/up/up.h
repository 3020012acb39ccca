#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lib/core/nowait_writer.h"
#include "lib/run/signals.h"
#include "tools/up/console.h"
#include "tools/up/run_services.h"
#include "tools/up/run_status.h"
#include "tools/up/up_options.h"

namespace tetrion {

// The foreground process of a run: supervisor, console and summary. One thread, the main one, which
// must also have been the first: children drain when it dies. Nothing waits for the terminal: what
// it does not take at once is not shown.
class Up {
 public:
  Up(const UpOptions& options, RunPlan plan, SignalWatcher& signals);

  // Blocks until the run has ended; returns the exit code.
  int Run();

 private:
  void Print(const std::string& text);
  void WarnOfLostTraining();
  void WarnOfOlderCheckpoint(const std::optional<RunStatus>& status);
  void LookAtTheWhole(const RunStatus& before);
  void PrintSummary(double wall_s);
  std::string NewestCheckpoint() const;

  const UpOptions options_;
  const RunPlan plan_;
  SignalWatcher& signals_;
  RunServices services_;
  const RunFolder& folder_;  // it and supervisor_ are parts of services_
  Supervisor& supervisor_;
  NoWaitWriter out_;
  Console console_;
  std::optional<RunStatus> status_;  // the newest seen
  bool warned_of_older_ = false;     // that training goes on from an earlier checkpoint
};

}  // namespace tetrion
