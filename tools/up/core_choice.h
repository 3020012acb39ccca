#pragma once

#include <optional>

#include "lib/run/signals.h"
#include "tools/up/up_options.h"

namespace tetrion {

// `--threads auto` (docs/decisions/0026-trial-runs-choose-the-split.md): sets options.workers
// and options.threads to the split of `cores` with which the planned run trains fastest: the one
// that is remembered for this machine, or what trial runs say, which is remembered then. Prints
// each trial and the choice. Where there is nothing to choose, or nothing was trained, it takes the
// rule's split, which the plan has. nullopt: go on; otherwise the exit code of up, of an
// interrupted one or of one whose run would be refused. Main thread; blocks for about a minute at
// most, longer where updates take seconds. Throws as PlanRun, and where no temporary folder can
// be made.
std::optional<int> ChooseCores(const RunPlan& plan, int cores, SignalWatcher& signals,
                               UpOptions& options);

}  // namespace tetrion
