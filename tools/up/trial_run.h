#pragma once

#include <string>

#include "lib/run/signals.h"
#include "tools/up/core_split.h"
#include "tools/up/training_rate.h"
#include "tools/up/up_options.h"

namespace tetrion {

struct TrialResult {
  enum class End {
    kMeasured,     // its speed is known
    kInterrupted,  // the user asks for the end, as `signals` says
    kFailed,       // a service ended, as `exit_code` and `failed` say
    kTooSlow,      // too little was trained in kTrialLimitS
  };
  End end = End::kTooSlow;
  TrainingSpeed speed;
  int exit_code = 0;   // of up, had this been its run
  std::string failed;  // the service that ended
};

inline constexpr int kTrialLimitS = 60;  // for slow updates: a trial is over in some 6 s

// Plays a new run of the planned run's settings with that split, in a temporary folder, until it is
// known how fast it trains; then kills it. Nothing of it stays, also where a second signal ends
// this process, and rings that a run to be resumed has left stay. `ends_at_first_death`: of a
// service, which else is started again as it would be in the run. What fails is told on stderr as
// it is of a run. Main thread; blocks.
TrialResult PlayTrial(const UpOptions& options, const RunPlan& plan, const CoreSplit& split,
                      bool ends_at_first_death, int cores, SignalWatcher& signals);

}  // namespace tetrion
